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

/** A name that says nothing of what is inside. */
const EMPTY_WORDS = /^(utils?|helpers?|types?|common|lib|src|misc|shared)$/i;

/** Where somebody's computer would show: put together here, so that this file does not show one. */
const MACHINE_PATHS = ['work', 'farm', 'root', 'home', 'Users'].map((folder) => `/${folder}/`);

describe('words', () => {
  it('no file or folder has a name that says nothing', () => {
    const named = sources.filter((path) => path.split('/').some((part) => EMPTY_WORDS.test(part.replace(/\..*$/, ''))));
    expect(named).to.deep.equal([]);
  });

  it('file names are in kebab-case', () => {
    const odd = sources.filter(
      (path) => /\.(ts|lua)$/.test(path) && !/^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z]+)+$/.test(basename(path)),
    );
    expect(odd).to.deep.equal([]);
  });

  it('no file knows a path of the machine it was written on', () => {
    const found = written.flatMap((path) => {
      const text = textOf(path);
      return [...MACHINE_PATHS, PROJECT].filter((each) => text.includes(each)).map((each) => `${path}: ${each}`);
    });
    expect(found).to.deep.equal([]);
  });

  it('the lock files name no registry but the public one', () => {
    const locked = ['package-lock.json', 'test/agents/package-lock.json'].map(textOf).join('\n');
    const hosts = new Set([...locked.matchAll(/"resolved": "(https?:\/\/[^/"]+)/g)].map(([, host]) => host));
    expect([...hosts].filter((host) => host !== 'https://registry.npmjs.org')).to.deep.equal([]);
  });

  it('the lock file is of the version in package.json', () => {
    const own = JSON.parse(textOf('package.json')) as { name: string; version: string };
    const locked = JSON.parse(textOf('package-lock.json')) as { name: string; version: string };
    expect([locked.name, locked.version]).to.deep.equal([own.name, own.version]);
  });
});
