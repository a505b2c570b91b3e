import { expect } from 'chai';
import { filesUnder, textOf } from '../support/sources';

const FOLDERS = [
  'core',
  'policies',
  'plugins',
  'cli',
  'console',
  'conformance',
  'exports',
  'demo',
  'bench',
  'migrations',
  'test',
  'docs',
];
const SELF = 'test/agreement/citations.test.ts';
const cited = [...FOLDERS.flatMap(filesUnder), ...filesUnder('.').filter((path) => !path.includes('/'))].filter(
  (path) => /\.([cm]?[jt]sx?|lua|md|ya?ml)$/.test(path) && path !== SELF,
);

const sections = new Set(
  [...textOf('docs/contract.md').matchAll(/^#{2,3} (\d+(?:\.\d+)?)\.? /gm)].map(([, number = '']) => number),
);

/** Matches a contract or a specification, a section and its numbers, and a folder before it. */
const CITATION =
  /(docs\/)?\b(contract|spec(?:ification)?)(?:\.md)?`?,? (?:sections? )?(\d+(?:\.\d+)?(?:(?:, | and |, and )\d+(?:\.\d+)?)*)/gi;

/** Lists the mistakes of the citations in a text. */
function problemsIn(text: string, known: ReadonlySet<string>): readonly string[] {
  return [...unwrapped(text).matchAll(CITATION)].flatMap(([whole, folder, document, numbers = '']) => {
    if (folder === undefined || document !== 'contract')
      return [`"${whole}": write docs/contract.md, section ${numbers}`];
    return numbers
      .split(/, and | and |, /)
      .filter((number) => !known.has(number))
      .map((number) => `"${whole}": docs/contract.md has no section ${number}`);
  });
}

/** Joins the lines of a comment or paragraph, because a citation may stand in two of them. */
function unwrapped(text: string): string {
  return text.replaceAll(/[ \t]*\n[ \t]*(?:\*(?!\/)|\/\/|--)?[ \t]*/g, ' ');
}

describe('citations of the contract', () => {
  it('name the file docs/contract.md and one of its sections', () => {
    const wrong = cited.flatMap((path) => problemsIn(textOf(path), sections).map((problem) => `${path}: ${problem}`));
    expect(wrong).to.deep.equal([]);
  });

  it('are found in many files, which shows that the search itself works', () => {
    const citing = cited.filter(
      (path) => /\.ts$/.test(path) && unwrapped(textOf(path)).includes('docs/contract.md, s'),
    );
    expect(citing.length).to.be.greaterThan(15);
    expect([...sections]).to.include.members(['1', '1.3', '4.1', '8.2', '12']);
  });
});
