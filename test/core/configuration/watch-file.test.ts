import { renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { expect } from 'chai';
import { watchFile } from '../../../core/configuration/watch-file';
import { temporaryFolder } from '../../support/configuration-folder';
import { until } from '../../support/until';

describe('the watcher of a file', () => {
  const EVERY_MS = 20;
  let stop: () => void = () => undefined;
  afterEach(() => stop());

  /** Counts the changes that the watcher reports. */
  function watched(path: string): { readonly changes: number } {
    const told = { changes: 0 };
    const count = () => {
      told.changes += 1;
    };
    stop = watchFile(path, count, EVERY_MS);
    return told;
  }

  it('reports that the file was written, replaced, removed or created again', async () => {
    const folder = temporaryFolder({ 'a.yml': 'one' });
    const path = join(folder, 'a.yml');
    const told = watched(path);
    writeFileSync(path, 'two');
    await until('it is told of', () => told.changes === 1);
    writeFileSync(join(folder, 'b.yml'), 'three');
    renameSync(join(folder, 'b.yml'), path);
    await until('it is told of', () => told.changes === 2);
    rmSync(path);
    await until('it is told of', () => told.changes === 3);
    writeFileSync(path, 'three');
    await until('it is told of', () => told.changes === 4);
  });

  it('reports that a folder in the path was replaced, as Kubernetes does with a ConfigMap', async () => {
    const folder = temporaryFolder({ '..one/a.yml': 'one', '..two/a.yml': 'two' });
    symlinkSync('..one', join(folder, '..data'));
    symlinkSync('..data/a.yml', join(folder, 'a.yml'));
    const told = watched(join(folder, 'a.yml'));
    symlinkSync('..two', join(folder, '..data_tmp'));
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
    await until('it is told of', () => told.changes === 1);
  });

  it('reports nothing during a write, or after a write that leaves the content unchanged', async () => {
    const folder = temporaryFolder({ 'a.yml': 'one' });
    const path = join(folder, 'a.yml');
    const told = watched(path);
    // One write for each turn of the event loop, so that no two looks find the same content, however slow the machine is.
    for (const endMs = performance.now() + 20 * EVERY_MS; performance.now() < endMs; await setImmediate())
      writeFileSync(path, String(performance.now()));
    writeFileSync(path, 'one');
    await setTimeout(4 * EVERY_MS);
    expect(told.changes).to.equal(0);
  });
});
