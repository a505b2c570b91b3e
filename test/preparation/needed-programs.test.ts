import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { rejection } from '../support/rejection';
import { type Machine, preparePrograms } from './needed-programs';

const PROJECT = resolve(__dirname, '../..');
const NEEDED = { 'redis-server': 'redis-server', postgres: 'postgresql', initdb: 'postgresql', bwrap: 'bubblewrap' };

describe('the preparation of the tests', () => {
  it('installs the packages of all missing programs at once, each package once', async () => {
    const machine = bareMachine();
    await preparePrograms(NEEDED, machine);
    expect(machine.installed).to.deep.equal([['redis-server', 'postgresql', 'bubblewrap']]);
  });

  it('installs nothing if nothing is missing', async () => {
    const machine = bareMachine({ has: () => true });
    await preparePrograms(NEEDED, machine);
    expect(machine.installed).to.deep.equal([]);
  });

  for (const [where, limits, reason] of [
    ['as another user than root', { isRoot: false }, 'Only root'],
    ['without apt-get', { hasAptGet: false }, 'no apt-get'],
  ] as const) {
    it(`lists missing programs and how to install them ${where}`, async () => {
      const machine = bareMachine(limits);
      const { message } = await rejection(preparePrograms(NEEDED, machine));
      expect(message).to.include('missing: redis-server, postgres, initdb, bwrap.').and.include(reason);
      expect(message).to.include('apt-get install --no-install-recommends redis-server postgresql bubblewrap');
      expect(machine.installed).to.deep.equal([]);
    });
  }

  it('fails if a package does not contain its program', async () => {
    const machine = bareMachine({ has: () => false });
    const { message } = await rejection(preparePrograms(NEEDED, machine));
    expect(message).to.include('not there: redis-server, postgres, initdb, bwrap');
  });

  it('starts no blocking child process in the process that serves the shared stores', async () => {
    const folder = join(PROJECT, 'test/support');
    const names = (await readdir(folder)).filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'));
    const sources = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
    const blocking = names.filter((_, index) => /\b(exec|execFile|spawn)Sync\b/.test(sources[index] ?? ''));
    expect(blocking).to.deep.equal([]);
  });
});

/** A machine with none of the programs until their packages are installed. */
function bareMachine(limits: Partial<Machine> = {}): Machine & { readonly installed: (readonly string[])[] } {
  const installed: (readonly string[])[] = [];
  return {
    installed,
    has: () => installed.length > 0,
    isRoot: true,
    hasAptGet: true,
    tell: () => {},
    install: async (packages) => void installed.push(packages),
    ...limits,
  };
}
