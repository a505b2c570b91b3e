import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mountsBelow, removeEngineFolder } from './engine-folder';

describe("the folder of a test's Docker engine", () => {
  it('is removed with everything that is still mounted in it, once no process of the engine runs', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tollgate-engine-folder-'));
    for (const place of ['data/overlay 2', 'data/overlay 2/within', 'data/overlay 2', 'netns'].map((each) =>
      join(folder, each),
    )) {
      await mkdir(place, { recursive: true });
      execFileSync('mount', ['-t', 'tmpfs', 'tollgate-test', place]);
    }
    assert.equal((await mountsBelow(folder)).length, 4);
    // Exits with an error if its folder is gone.
    const script = 'sleep 0.5; echo late > "$1/late"';
    const shim = spawn('sh', ['-c', script, 'sh', folder, join(folder, 'exec/containerd.sock')]);
    const ended = new Promise((done) => shim.once('exit', done));
    await removeEngineFolder(folder);
    assert.deepEqual([existsSync(folder), await mountsBelow(folder), await ended], [false, [], 0]);
  });
});
