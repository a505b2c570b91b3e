import { posix } from 'node:path';
import { expect } from 'chai';
import { mapValues } from '../../core/base/collections';
import { filesUnder, textOf } from '../support/sources';

/** Suites that the package exports under a different name. */
const SUITES: Readonly<Record<string, string>> = {
  './conformance': './dist/conformance/upstream',
  './dialect-conformance': './dist/conformance/dialect',
  './supplier-conformance': './dist/conformance/supplier',
};

/** Returns whether a name has a doc comment, also in the file from which the source re-exports it. */
function hasDocstring(source: string, name: string): boolean {
  const text = textOf(`${source}.ts`);
  const passedOn = new RegExp(`export type \\{[^}]*\\b${name}\\b[^}]*\\} from '\\./([^']+)'`).exec(text)?.[1];
  if (passedOn !== undefined) return hasDocstring(posix.join(posix.dirname(source), passedOn), name);
  return new RegExp(`\\*/\\nexport (const|(?:async )?function|interface|type|class|abstract class) ${name}\\b`).test(
    text,
  );
}

describe('the exports of the package', () => {
  it('are the files of exports/ and the conformance suites, and nothing else', () => {
    const { exports: published } = JSON.parse(textOf('package.json')) as { exports: Record<string, unknown> };
    const files = filesUnder('exports').map((path) => path.slice('exports/'.length, -'.ts'.length));
    const doors = { ...Object.fromEntries(files.map((name) => [`./${name}`, `./dist/exports/${name}`])), ...SUITES };
    const expected = {
      ...mapValues(doors, (path) => ({ types: `${path}.d.ts`, default: `${path}.js` })),
      './package.json': './package.json',
    };
    expect(published, 'name each file of exports/ under "exports" of package.json').to.deep.equal(expected);
  });

  it('have a doc comment for each name', () => {
    const silent = filesUnder('exports').flatMap((path) =>
      [...textOf(path).matchAll(/export (?:type )?\{([^}]*)\} from '\.\.\/([^']+)'/g)].flatMap(
        ([, names = '', source = '']) =>
          names
            .split(',')
            .map((name) => name.trim().replace('type ', ''))
            .filter((name) => name !== '' && !hasDocstring(source, name))
            .map((name) => `${name} of ${source}.ts`),
      ),
    );
    expect(silent, 'write a comment that begins with /** before the declaration').to.deep.equal([]);
  });

  it('list each name: no file of exports/ re-exports a whole module', () => {
    const whole = filesUnder('exports').filter((path) => /export (type )?\*/.test(textOf(path)));
    expect(whole, 'list the names that packages outside may use').to.deep.equal([]);
  });
});
