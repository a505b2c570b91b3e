import { expect } from 'chai';
import { filesUnder, textOf } from '../support/sources';

/** Matches a declaration that a file exports. A re-export has no declaration, so it does not count. */
const DECLARED =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:class|const enum|const|enum|function\*?|interface|let|namespace|type) +([\w$]+)/gm;
/** Matches a list of names that are declared in the same file. */
const LISTED = /^export (?:type )?\{([^}]*)\}(?! from)/gm;

/** Lists the names that a text declares and exports, each once: a type and a value of one name, or several signatures, are one. */
function exportedNames(text: string): ReadonlySet<string> {
  const declared = Array.from(text.matchAll(DECLARED), ([, name = '']) => name);
  const listed = Array.from(text.matchAll(LISTED), ([, names = '']) => names.split(',')).flat();
  const shown = listed.map((name) =>
    name
      .trim()
      .replace(/^type /, '')
      .replace(/^.* as /, ''),
  );
  return new Set([...declared, ...shown].filter((name) => name !== '' && name !== 'default'));
}

/** Returns the files that export each name. */
function exporters(texts: ReadonlyMap<string, string>): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const [file, text] of texts)
    for (const name of exportedNames(text)) found.set(name, [...(found.get(name) ?? []), file]);
  return found;
}

/** Lists the names with more than one meaning. */
function shared(texts: ReadonlyMap<string, string>): readonly string[] {
  return [...exporters(texts)]
    .filter(([, files]) => files.length > 1)
    .map(([name, files]) => `${name}: ${files.join(' and ')}`);
}

const sources = new Map(
  ['core', 'policies', 'plugins']
    .flatMap(filesUnder)
    .filter((path) => path.endsWith('.ts'))
    .map((path) => [path, textOf(path)]),
);

describe('an exported name of core, policies and plugins', () => {
  it('has one meaning, because only one file exports it', () => {
    const remedy = 'give each its own word, or do not export what only its own file uses';
    expect(shared(sources), remedy).to.deep.equal([]);
  });

  it('is one of more than 1,000 found names, which shows that the search itself works', () => {
    expect(exporters(sources).size).to.be.greaterThan(1_000);
  });

  it('may be re-exported from the file that declares the name, and may have several signatures', () => {
    const one =
      'export interface Span {}\nexport const Span = 1;\nexport function at(a: 1): 1;\nexport function at(a: 2): 2;\n';
    const again = "export { Span, at } from './one';\nexport type { Other } from './other';\n";
    expect(
      shared(
        new Map([
          ['one.ts', one],
          ['again.ts', again],
        ]),
      ),
    ).to.deep.equal([]);
  });

  it('is rejected if a second file exports the same name, even in an export list', () => {
    const texts = new Map([
      ['a.ts', 'export type Place = string;\n'],
      ['b.ts', 'interface Place {}\nexport type { Place };\n'],
      ['c.ts', 'export async function ask() {}\n'],
      ['d.ts', 'export const ask = 1;\n'],
    ]);
    expect(shared(texts)).to.deep.equal(['Place: a.ts and b.ts', 'ask: c.ts and d.ts']);
  });
});
