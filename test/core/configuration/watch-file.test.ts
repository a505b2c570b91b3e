import { renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
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

  /** Waits for a number of looks at the file, because a change that must not be reported has no event. */
  const looks = (count: number) => new Promise((wake) => setTimeout(wake, count * EVERY_MS));

  it('reports that the file is written, replaced, removed and created again', async () => {
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

  it('reports that a folder behind the path is swapped, as Kubernetes does with a ConfigMap', async () => {
    const folder = temporaryFolder({ '..one/a.yml': 'one', '..two/a.yml': 'two' });
    symlinkSync('..one', join(folder, '..data'));
    symlinkSync('..data/a.yml', join(folder, 'a.yml'));
    const told = watched(join(folder, 'a.yml'));
    symlinkSync('..two', join(folder, '..data_tmp'));
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
    await until('it is told of', () => told.changes === 1);
  });

  it('reports nothing during a write, or after a write of the same content', async () => {
    const folder = temporaryFolder({ 'a.yml': 'one' });
    const path = join(folder, 'a.yml');
    const told = watched(path);
    for (let size = 0; size < 20; size += 1) {
      writeFileSync(path, 'x'.repeat(size));
      await looks(0.3);
    }
    writeFileSync(path, 'one');
    await looks(4);
    expect(told.changes).to.equal(0);
  });
});
