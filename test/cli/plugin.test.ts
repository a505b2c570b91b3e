import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { runTollgate } from '../support/command-line';
import { temporaryFolder } from '../support/databases';
import { startGateway } from '../support/gateway';
import { builtServer } from '../support/shared';
import { PROJECT, textOf } from '../support/sources';

const run = promisify(execFile);

const KINDS = ['upstream', 'dialect', 'policy', 'plugin', 'supplier'] as const;

describe('a package made by `tollgate plugin new`', function () {
  this.timeout(120_000);
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  before(async () => {
    folder = await temporaryFolder();
    await builtServer();
    for (const kind of KINDS) assert.equal((await begin(kind, `my-${kind}`)).status, 0);
  });
  after(() => folder.remove());

  function begin(kind: string, name: string) {
    return runTollgate(['plugin', 'new', kind, name], { TOLLGATE_CONFIG_DIR: folder.path });
  }

  for (const kind of KINDS) {
    it(`passes its own tests unchanged, for the kind ${kind}`, async () => {
      const { stdout } = await run('npm', ['test'], { cwd: join(folder.path, `my-${kind}`) });
      assert.match(stdout, /pass [1-9]/);
      assert.match(stdout, /fail 0/);
      assert.match(stdout, new RegExp(`my-${kind}`));
    });
  }

  it('compiles under strict type checks', async () => {
    const options = { strict: true, allowJs: true, checkJs: true, noEmit: true, module: 'nodenext', target: 'es2023' };
    const include = KINDS.flatMap((kind) => [`my-${kind}/*.js`, `my-${kind}/*.ts`]);
    await symlink(join(PROJECT, 'node_modules/@types'), join(folder.path, 'types'));
    const compilerOptions = { ...options, types: ['node'], typeRoots: ['types'] };
    await writeFile(join(folder.path, 'tsconfig.json'), JSON.stringify({ compilerOptions, include }));
    const compiler = join(PROJECT, 'node_modules/typescript/bin/tsc');
    const compiled = await run(process.execPath, [compiler, '-p', folder.path]).catch((error: object) => error);
    assert.equal((compiled as { stdout: string }).stdout, '');
  });

  it('serves requests once the lines that the command prints are in system.config.yml', async () => {
    const { out } = await begin('plugin', 'greeter');
    const lines = parse(out.slice(out.indexOf('plugins:'), out.indexOf('and, to change')));
    assert.deepEqual(lines, { plugins: { greeter: { package: './greeter' } } });
    const { plugins } = parse(textOf('system.config.yml'));
    const greeter = { package: join(folder.path, 'greeter'), otherwise: 'good day' };
    const gateway = await startGateway({
      upstreams: {},
      system: { plugins: { ...plugins, greeter } },
      configure: (config) => {
        Object.assign(config, parse(out.slice(out.indexOf('\ngreeter:'), out.indexOf('Then'))));
      },
    });
    try {
      assert.deepEqual((await gateway.call('/greeter', { method: 'GET' })).json, { greeting: 'good day' });
      assert.deepEqual((await gateway.call('/greeter?language=it', { method: 'GET' })).json, { greeting: 'ciao' });
      const { json } = await gateway.call('/openapi.json', { method: 'GET' });
      assert.equal(json.paths['/greeter'].get.summary, 'Says hello.');
    } finally {
      await gateway.stop();
    }
  });

  it('is not created over an existing folder, with an invalid name or with an unknown kind', async () => {
    await begin('plugin', 'kept');
    const before = await readFile(join(folder.path, 'kept/index.js'), 'utf8');
    const again = await begin('plugin', 'kept');
    assert.equal(again.status, 1);
    assert.match(again.notes, /already exists/);
    assert.equal(await readFile(join(folder.path, 'kept/index.js'), 'utf8'), before);
    for (const name of ['../x', 'Greeter', 'a b', '.']) assert.equal((await begin('plugin', name)).status, 2);
    const unknown = await begin('adapter', 'x');
    assert.equal(unknown.status, 2);
    assert.match(unknown.notes, /upstream, dialect, policy, plugin, supplier/);
  });
});
