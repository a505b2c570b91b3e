import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { link, readdir, readFile, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { lockDataFolder } from '../../../core/storage/data-folder';
import { temporaryFolder } from '../../support/databases';
import { rejection } from '../../support/rejection';
import { until } from '../../support/until';

describe('the lock of a data folder', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  beforeEach(async () => {
    folder = await temporaryFolder();
  });
  afterEach(() => folder.remove());

  const locked = (path: string) =>
    spawn(
      process.execPath,
      [
        '-r',
        'tsx/cjs',
        '-e',
        `require('./core/storage/data-folder').lockDataFolder(${JSON.stringify(path)});setInterval(()=>{},1e3)`,
      ],
      { stdio: 'ignore' },
    );

  it('names the process that holds it, and passes to another process once that one is dead', async () => {
    const holder = locked(folder.path);
    const lock = join(folder.path, 'lock');
    await until(
      'the other process holds the lock',
      async () => JSON.parse(await readFile(lock, 'utf8')).pid === holder.pid,
    );
    const error = await rejection(lockDataFolder(folder.path));
    assert.ok(error.message.includes(`process ${holder.pid}`));
    assert.ok(error.message.includes(folder.path));
    assert.ok(error.message.includes('DATA_DIR'));
    const { token } = JSON.parse(await readFile(lock, 'utf8'));
    const ended = once(holder, 'exit');
    holder.kill('SIGKILL');
    await ended;
    // Leaves the lock as a process does that is killed right after it took the lock.
    await link(lock, `${lock}.${token}`).catch((error: NodeJS.ErrnoException) => assert.equal(error.code, 'EEXIST'));
    const taken = await lockDataFolder(folder.path);
    assert.equal(JSON.parse(await readFile(lock, 'utf8')).pid, process.pid);
    await taken.release();
    assert.deepEqual(await readdir(folder.path), []);
  });

  it('is taken over from an ended process that had the same process id', async () => {
    const before = { token: 'x', pid: process.pid, host: hostname(), startedAt: 'long ago' };
    await writeFile(join(folder.path, 'lock'), JSON.stringify(before));
    await (await lockDataFolder(folder.path)).release();
  });

  it('is respected while another host keeps its file recent, and taken over when that host is silent', async () => {
    const path = join(folder.path, 'lock');
    await writeFile(path, JSON.stringify({ token: 'x', pid: 1, host: 'another-host', startedAt: '1' }));
    assert.match((await rejection(lockDataFolder(folder.path))).message, /on host another-host/);
    const longAgo = new Date(Date.now() - 60_000);
    await utimes(path, longAgo, longAgo);
    await (await lockDataFolder(folder.path)).release();
  });

  it('goes to exactly one of many processes that find the same dead owner', async () => {
    for (let round = 0; round < 30; round += 1) {
      await writeFile(join(folder.path, 'lock'), 'not a lock');
      const results = await Promise.allSettled(Array.from({ length: 20 }, () => lockDataFolder(folder.path)));
      const locks = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
      assert.equal(locks.length, 1);
      await locks[0]?.release();
      assert.deepEqual(await readdir(folder.path), []);
    }
  });

  it('is taken over from a process that died during a takeover', async () => {
    const dead = (token: string) =>
      JSON.stringify({ token, pid: process.pid, host: hostname(), startedAt: 'long ago' });
    await writeFile(join(folder.path, 'lock'), dead('first'));
    await writeFile(join(folder.path, 'lock.after-first'), dead('second'));
    const lock = await lockDataFolder(folder.path);
    assert.deepEqual(await readdir(folder.path), ['lock']);
    await lock.release();
  });
});
