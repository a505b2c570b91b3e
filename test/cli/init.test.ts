import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runTollgate } from '../support/command-line';
import { temporaryFolder } from '../support/databases';
import { PROJECT, textOf } from '../support/sources';

describe('a folder for a new gateway', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  before(async () => {
    folder = await temporaryFolder();
  });
  after(() => folder.remove());

  it('gets the shipped configuration from `tollgate init`, with the paths at which npm installs the schemas', async () => {
    const path = join(folder.path, 'My Gateway');
    const { status, out } = await runTollgate(['init', path]);
    assert.equal(status, 0);
    assert.match(out, /npx tollgate start --demo/);
    for (const name of ['gateway.config.yml', 'system.config.yml']) {
      const [first, ...rest] = (await readFile(join(path, name), 'utf8')).split('\n');
      assert.match(first ?? '', /\$schema=\.\/node_modules\/tollgate\/schemas\//);
      assert.deepEqual(rest, textOf(name).split('\n').slice(1));
    }
    assert.equal(JSON.parse(await readFile(join(path, 'package.json'), 'utf8')).name, 'my-gateway');
  });

  it("gets the running Tollgate's folder as npm dependency from `tollgate init`, because no registry has the package", async () => {
    const path = join(folder.path, 'linked');
    const { out } = await runTollgate(['init', path]);
    const { dependencies } = JSON.parse(await readFile(join(path, 'package.json'), 'utf8'));
    assert.deepEqual(dependencies, { tollgate: `file:${PROJECT}` });
    assert.match(out, new RegExp(`not published yet.*\\n  ${PROJECT}\n`));
  });

  it('is not overwritten by a second `tollgate init`', async () => {
    await runTollgate(['init', join(folder.path, 'kept')]);
    const again = await runTollgate(['init', join(folder.path, 'kept')]);
    assert.equal(again.status, 1);
    assert.match(again.notes, /already exists/);
  });

  it('is refused by `tollgate start` without a configuration, and the message names `tollgate init`', async () => {
    const { status, notes } = await runTollgate(['start', folder.path]);
    assert.equal(status, 1);
    assert.match(notes, /has no system\.config\.yml\. Create a folder with one by `tollgate init <folder>`/);
  });
});
