import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { runTollgate } from '../support/command-line';
import { temporaryFolder } from '../support/databases';
import { startGateway } from '../support/gateway';
import { textOf } from '../support/sources';

describe('a plugin of one’s own', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  before(async () => {
    folder = await temporaryFolder();
  });
  after(() => folder.remove());

  function begin(name: string) {
    return runTollgate(['plugin', 'new', name], { TOLLGATE_CONFIG_DIR: folder.path });
  }

  it('is begun with one command, and serves as it is', async () => {
    const { status, out } = await begin('greeter');
    assert.equal(status, 0);
    const lines = parse(out.slice(out.indexOf('plugins:'), out.indexOf('Then')));
    assert.deepEqual(lines, { plugins: { greeter: { package: './greeter', greeting: 'hello' } } });
    const { plugins } = parse(textOf('system.config.yml'));
    const greeter = { package: join(folder.path, 'greeter'), greeting: 'good day' };
    const gateway = await startGateway({ upstreams: {}, system: { plugins: { ...plugins, greeter } } });
    try {
      assert.deepEqual((await gateway.call('/greeter', { method: 'GET' })).json, { greeting: 'good day' });
      const { json } = await gateway.call('/openapi.json', { method: 'GET' });
      assert.equal(json.paths['/greeter'].get.summary, 'Says hello.');
    } finally {
      await gateway.stop();
    }
  });

  it('is not begun over what is there, nor under a name that cannot be one', async () => {
    await begin('kept');
    const before = await readFile(join(folder.path, 'kept/index.js'), 'utf8');
    const again = await begin('kept');
    assert.equal(again.status, 1);
    assert.match(again.notes, /is there already/);
    assert.equal(await readFile(join(folder.path, 'kept/index.js'), 'utf8'), before);
    for (const name of ['../x', 'Greeter', 'a b', '.']) assert.equal((await begin(name)).status, 2);
  });
});
