import { expect } from 'chai';
import { filesUnder, textOf } from '../support/sources';

/** Suites that are published under a name of their own. */
const SUITES: Readonly<Record<string, string>> = {
  './conformance': './dist/conformance/upstream.js',
  './dialect-conformance': './dist/conformance/dialect.js',
  './supplier-conformance': './dist/conformance/supplier.js',
};

describe('what the package exports', () => {
  it('is the files of exports/ and the conformance suites', () => {
    const { exports: published } = JSON.parse(textOf('package.json')) as { exports: Record<string, string> };
    const files = filesUnder('exports').map((path) => path.slice('exports/'.length, -'.ts'.length));
    const expected = {
      ...Object.fromEntries(files.map((name) => [`./${name}`, `./dist/exports/${name}.js`])),
      ...SUITES,
      './package.json': './package.json',
    };
    expect(published, 'name each file of exports/ under "exports" of package.json').to.deep.equal(expected);
  });

  it('names each thing: a file of exports/ re-exports nothing as a whole', () => {
    const whole = filesUnder('exports').filter((path) => /export (type )?\*/.test(textOf(path)));
    expect(whole, 'list the names that packages outside may use').to.deep.equal([]);
  });
});
