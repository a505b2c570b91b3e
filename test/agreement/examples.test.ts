import { expect } from 'chai';
import { filesUnder, textOf } from '../support/sources';

const PAGES = [
  'writing-an-adapter',
  'writing-a-dialect',
  'writing-a-policy',
  'writing-a-plugin',
  'writing-a-driver',
].map((name) => `docs/${name}.md`);

describe('the documents for plugin authors', () => {
  it('link to the main file and the tests of each example', () => {
    const text = PAGES.map(textOf).join('\n');
    const files = filesUnder('examples').filter((path) => /^examples\/\w+\/(index|test\/\w+\.test)\.js$/.test(path));
    expect(files).to.have.length(10);
    expect(files.filter((path) => !text.includes(`](../${path})`))).to.deep.equal([]);
  });
});
