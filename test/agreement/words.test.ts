import { basename } from 'node:path';
import { expect } from 'chai';
import { filesUnder, PROJECT, textOf } from '../support/sources';

const sources = ['core', 'policies', 'plugins', 'cli', 'demo', 'bench', 'migrations', 'console', 'deploy'].flatMap(
  (room) => filesUnder(room),
);
const written = [
  ...sources,
  ...filesUnder('test'),
  ...filesUnder('docs'),
  ...filesUnder('.ci'),
  ...filesUnder('.').filter((path) => !path.includes('/')),
].filter((path) => /\.(ts|mjs|js|json|md|ya?ml|lua|sql|sh)$|\/run$/.test(path));

/** Matches a name that does not describe its contents. */
const EMPTY_WORDS = /^(utils?|helpers?|types?|common|lib|src|misc|shared)$/i;

/** Path segments of a developer's machine, assembled here so that this file does not contain such a path. */
const MACHINE_PATHS = ['work', 'farm', 'root', 'home', 'Users'].map((folder) => `/${folder}/`);

describe('the files of the repository', () => {
  it('have no meaningless word as a name, and neither have the folders', () => {
    const named = sources.filter((path) => path.split('/').some((part) => EMPTY_WORDS.test(part.replace(/\..*$/, ''))));
    expect(named).to.deep.equal([]);
  });

  it('have names in kebab-case', () => {
    const odd = sources.filter(
      (path) => /\.(ts|lua)$/.test(path) && !/^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z]+)+$/.test(basename(path)),
    );
    expect(odd).to.deep.equal([]);
  });

  it("contain no path of a developer's own machine", () => {
    const found = written.flatMap((path) => {
      const text = textOf(path);
      return [...MACHINE_PATHS, PROJECT].filter((each) => text.includes(each)).map((each) => `${path}: ${each}`);
    });
    expect(found).to.deep.equal([]);
  });

  it('contain only the public npm registry as the source of locked packages', () => {
    const locked = ['package-lock.json', 'test/agents/package-lock.json'].map(textOf).join('\n');
    const hosts = new Set([...locked.matchAll(/"resolved": "(https?:\/\/[^/"]+)/g)].map(([, host]) => host));
    expect([...hosts].filter((host) => host !== 'https://registry.npmjs.org')).to.deep.equal([]);
  });

  it('state the same version in package.json and in the lock file', () => {
    const own = JSON.parse(textOf('package.json')) as { name: string; version: string };
    const locked = JSON.parse(textOf('package-lock.json')) as { name: string; version: string };
    expect([locked.name, locked.version]).to.deep.equal([own.name, own.version]);
  });
});
