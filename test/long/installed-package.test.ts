import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { freePort } from '../support/free-port';
import { packPackage } from '../support/packed-package';
import { textOf } from '../support/sources';
import { until } from '../support/until';

const run = promisify(execFile);

/** What `npm ls --all --json` and a lock file say of a tree, as `name@version`. */
type Tree = ReadonlySet<string>;

interface Listed {
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, Listed>>;
}

function packagesIn({ dependencies = {} }: Listed): string[] {
  return Object.entries(dependencies).flatMap(([name, each]) => [
    ...(each.version === undefined ? [] : [`${name}@${each.version}`]),
    ...packagesIn(each),
  ]);
}

async function npm(cwd: string, ...words: string[]): Promise<string> {
  return (await run('npm', words, { cwd, maxBuffer: 64 * 1024 * 1024 })).stdout;
}

/** From npm's cache where it has a package: the tests before have filled it. */
function install(cwd: string, ...packages: string[]): Promise<string> {
  return npm(cwd, 'install', '--prefer-offline', '--no-audit', '--no-fund', ...packages);
}

async function installedIn(folder: string): Promise<Tree> {
  return new Set(packagesIn(JSON.parse(await npm(folder, 'ls', '--all', '--json')) as Listed));
}

interface Lock {
  readonly packages: Readonly<Record<string, { version?: string; dev?: boolean; link?: boolean; peer?: boolean }>>;
}

/** What runs in production, by the project's lock file. */
function locked(): Tree {
  const { packages } = JSON.parse(textOf('package-lock.json')) as Lock;
  const production = Object.entries(packages).filter(
    ([path, { dev, link }]) => path.includes('node_modules/') && !dev && !link,
  );
  return new Set(production.map(([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`));
}

/** Without what comes after the first number of the version: npm takes the newest that package.json allows. */
const majors = (tree: Tree) => new Set([...tree].map((each) => each.replace(/(@\d+)\..*$/, '$1')));

describe('The packed package, installed by npm in an empty folder', function () {
  this.timeout(600_000);
  let folder: string;
  let empty: string;
  let tarball: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tollgate-installed-'));
    tarball = await packPackage(folder);
    empty = join(folder, 'empty');
    await mkdir(empty);
    await writeFile(join(empty, 'package.json'), JSON.stringify({ name: 'empty', version: '1.0.0', private: true }));
    await install(empty, tarball);
  });
  after(() => rm(folder, { recursive: true, force: true }));

  it('brings the packages of the lock file, and no other', async () => {
    const known = majors(locked());
    const installed = await installedIn(empty);
    expect([...majors(installed)].filter((each) => !known.has(each))).to.deep.equal(['tollgate@0']);
    expect(installed.size).to.be.above(400);
  });

  it('brings Express Gateway with the very versions of the lock file, once and sound', async () => {
    const bundled = join(empty, 'node_modules/tollgate/node_modules');
    for (const name of Object.keys(JSON.parse(textOf('package.json')).overrides['express-gateway'])) {
      const wanted = [...locked()].find((each) => each.startsWith(`${name}@`));
      const found = await readFile(join(bundled, name, 'package.json'), 'utf8').catch(() => undefined);
      const version = found === undefined ? undefined : `${name}@${JSON.parse(found).version}`;
      if (wanted !== undefined && version !== undefined) expect(locked()).to.include(version);
      if (wanted === undefined) expect(version, `${name} is never loaded`).to.equal(undefined);
    }
  });

  it('stays as it is when something else is installed beside it, and by npm ci', async () => {
    const before = await installedIn(empty);
    const other = join(folder, 'other');
    await mkdir(other);
    await writeFile(join(other, 'package.json'), JSON.stringify({ name: 'other', version: '1.0.0' }));
    await npm(other, 'pack', '--pack-destination', folder);
    await install(empty, join(folder, 'other-1.0.0.tgz'));
    await npm(empty, 'ci', '--prefer-offline', '--no-audit', '--no-fund');
    expect(await installedIn(empty)).to.deep.equal(new Set([...before, 'other@1.0.0']));
  });

  describe('`npx tollgate init`', () => {
    let gateway: string;
    let child: ChildProcess | undefined;

    before(async () => {
      await run('npx', ['--no-install', 'tollgate', 'init', 'my-gateway'], { cwd: empty });
      gateway = join(empty, 'my-gateway');
    });
    after(() => void child?.kill('SIGKILL'));

    it('makes a folder whose package.json depends on this version and no other package', async () => {
      const { version } = JSON.parse(textOf('package.json')) as { version: string };
      const { dependencies } = JSON.parse(await readFile(join(gateway, 'package.json'), 'utf8'));
      expect(dependencies).to.deep.equal({ tollgate: `^${version}` });
    });

    it('makes one that npm installs, whose configuration is sound, and that serves the demo call', async () => {
      await install(gateway, tarball);
      const { stdout } = await run('npx', ['--no-install', 'tollgate', 'config', 'validate'], { cwd: gateway });
      expect(stdout).to.include('is sound');
      const [port, adminPort, demoPort] = await Promise.all([freePort(), freePort(), freePort()]);
      const ports = { PORT: String(port), ADMIN_PORT: String(adminPort), DEMO_PORT: String(demoPort) };
      child = spawn(join(gateway, 'node_modules/.bin/tollgate'), ['--json', 'start', '--demo'], {
        cwd: gateway,
        env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...ports },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let out = '';
      child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString()));
      const { url, key, dataDir } = await until('it serves', () => out.includes('\n') && JSON.parse(out), 120_000);
      expect(dataDir).to.equal(join(gateway, '.tollgate'));
      const answer = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
        body: JSON.stringify({ model: 'demo-model', messages: [{ role: 'user', content: 'Hello' }] }),
      });
      expect(answer.status).to.equal(200);
      expect(Number(answer.headers.get('x-ai-cost'))).to.be.above(0);
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      expect((await ended)[0]).to.equal(0);
    });
  });
});
