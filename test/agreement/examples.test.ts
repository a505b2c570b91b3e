import { expect } from 'chai';
import { filesUnder, textOf } from '../support/sources';

const PAGES = [
  'writing-an-adapter',
  'writing-a-dialect',
  'writing-a-policy',
  'writing-a-plugin',
  'writing-a-driver',
].map((name) => `docs/${name}.md`);

/** Lists the blocks of code, each with the line of text before it. */
function blocksOf(
  page: string,
): readonly { readonly before: string; readonly language: string; readonly code: string }[] {
  return [...textOf(page).matchAll(/^(.*)\n\n```(\w+)\n([\s\S]*?)^```$/gm)].map(
    ([, before = '', language = '', code = '']) => ({ before, language, code }),
  );
}

describe('the documents for plugin authors', () => {
  for (const page of PAGES) {
    it(`show files of examples/ unchanged: ${page}`, () => {
      const programs = blocksOf(page).filter(({ language }) => language === 'js' || language === 'ts');
      expect(programs).not.to.deep.equal([]);
      for (const { before, code } of programs) {
        const [, file = ''] = /^\[`(examples\/[^`]+)`\]\(\.\.\/\1\):$/.exec(before) ?? [];
        expect(file, `a link to the file stands before: ${code.slice(0, 60)}`).not.to.equal('');
        expect(code).to.equal(textOf(file));
      }
    });
  }

  it('show the expectations of recordings unchanged', () => {
    const [json] = blocksOf('docs/writing-an-adapter.md').filter(({ language }) => language === 'json');
    expect(json?.code).to.equal(textOf('examples/upstream/recordings/expected.json'));
  });

  it('show the main file of each example', () => {
    const text = PAGES.map(textOf).join('\n');
    const mains = filesUnder('examples').filter((path) => /^examples\/\w+\/index\.js$/.test(path));
    expect(mains).to.have.length(5);
    expect(mains.filter((path) => !text.includes(textOf(path)))).to.deep.equal([]);
  });
});
