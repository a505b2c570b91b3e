import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { filesUnder, PROJECT, textOf } from '../support/sources';

const run = promisify(execFile);

/** Lists the values (not types) that a file of exports/ exports. */
function valuesOf(path: string): readonly string[] {
  const lists = [...textOf(path).matchAll(/export \{([^}]*)\}/g)].flatMap(([, names = '']) => names.split(','));
  return lists.map((name) => name.trim()).filter((name) => name !== '' && !name.startsWith('type '));
}

/** Lists the types that a file of exports/ exports. */
function typesOf(path: string): readonly string[] {
  const text = textOf(path);
  const whole = [...text.matchAll(/export type \{([^}]*)\}/g)].flatMap(([, names = '']) => names.split(','));
  const single = [...text.matchAll(/\btype (\w+)[,\s]/g)].map(([, name = '']) => name);
  return [...whole.map((name) => name.trim()).filter((name) => name !== ''), ...single];
}

const DOORS = filesUnder('exports').map((path) => ({
  path,
  name: path.replace(/^exports\/(.*)\.ts$/, 'tollgate/$1'),
}));

describe('the packed package, installed in an empty folder', function () {
  this.timeout(120_000);
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tollgate-package-'));
    const pack = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder];
    const { stdout } = await run('npm', pack, { cwd: PROJECT });
    const [packed] = JSON.parse(stdout) as { filename: string }[];
    const installed = join(folder, 'node_modules/tollgate');
    await mkdir(installed, { recursive: true });
    await run('tar', [
      '-xzf',
      join(folder, packed?.filename ?? ''),
      '-C',
      installed,
      '--strip-components',
      '1',
      '--exclude=package/node_modules',
    ]);
    // Uses the dependencies of the project.
    await symlink(join(PROJECT, 'node_modules'), join(installed, 'node_modules'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  async function node(code: string): Promise<string> {
    return (await run(process.execPath, ['-e', code], { cwd: folder })).stdout.trim();
  }

  for (const { path, name } of DOORS) {
    it(`exports from ${name} the names that ${path} lists`, async () => {
      const code = `console.log(JSON.stringify(Object.keys(require('${name}')).sort()))`;
      expect(JSON.parse(await node(code))).to.deep.equal([...valuesOf(path)].sort());
    });
  }

  it('exports both conformance suites', async () => {
    const code = `console.log(typeof require('tollgate/conformance').upstreamConformance,
      typeof require('tollgate/supplier-conformance').supplierConformance)`;
    expect(await node(code)).to.equal('function function');
  });

  it('has a declaration for every exported type', async () => {
    const lines = DOORS.flatMap(({ path, name }) => {
      const types = typesOf(path).map((type) => `type ${type}`);
      return types.length === 0 ? [] : [`export { ${types.join(', ')} } from '${name}';`];
    });
    // Two entry points may have a type of the same name.
    await Promise.all(lines.map((line, index) => writeFile(join(folder, `use-${index}.ts`), `${line}\n`)));
    const options = { strict: true, noEmit: true, module: 'nodenext', target: 'es2023', types: ['node'] };
    await symlink(join(PROJECT, 'node_modules/@types'), join(folder, 'node_modules/@types'));
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, include: ['*.ts'] }));
    const compiler = join(PROJECT, 'node_modules/typescript/bin/tsc');
    const compiled = await run(process.execPath, [compiler, '-p', folder]).catch((error: { stdout: string }) => error);
    expect(compiled.stdout).to.equal('');
  });

  it('does not export internal modules', async () => {
    const code = `try { require('tollgate/core/base/money') } catch ({ code }) { console.log(code) }`;
    expect(await node(code)).to.equal('ERR_PACKAGE_PATH_NOT_EXPORTED');
  });

  it('contains every Lua script of the ledger', async () => {
    const scripts = filesUnder('core/ledger').filter((path) => path.endsWith('.lua'));
    expect(scripts).to.have.length.above(10);
    const missing = scripts.filter((path) => !existsSync(join(folder, 'node_modules/tollgate/dist', path)));
    expect(missing).to.deep.equal([]);
  });

  it('contains no test', () => {
    expect(existsSync(join(folder, 'node_modules/tollgate/test'))).to.equal(false);
    expect(existsSync(join(folder, 'node_modules/tollgate/dist/test'))).to.equal(false);
  });
});
