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
      for (const { before, code } of blocksOf(page).filter(({ language }) => language === 'js' || language === 'ts')) {
        const [, file = ''] = /^\[`(examples\/[^`]+)`\]\(\.\.\/\1\):$/.exec(before) ?? [];
        expect(file, `a link to the file stands before: ${code.slice(0, 60)}`).not.to.equal('');
        expect(code).to.equal(textOf(file));
      }
    });
  }

  it('link to the main file and the tests of each example', () => {
    const text = PAGES.map(textOf).join('\n');
    const files = filesUnder('examples').filter((path) => /^examples\/\w+\/(index|test\/\w+\.test)\.js$/.test(path));
    expect(files).to.have.length(10);
    expect(files.filter((path) => !text.includes(`](../${path})`))).to.deep.equal([]);
  });
});
