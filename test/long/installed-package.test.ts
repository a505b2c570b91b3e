import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { parse, stringify } from 'yaml';
import { freePort } from '../support/free-port';
import { packPackage } from '../support/packed-package';
import { PROJECT, textOf } from '../support/sources';
import { until } from '../support/until';
import { respond, startUpstream, type TestUpstream } from '../support/upstream';

const run = promisify(execFile);

/** The packages of a tree as `name@version`, from `npm ls --all --json` or from a lock file. */
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

/** The environment without the settings of the npm that started these tests, such as `npx --package=node@24`. A shell does not have them. */
const SHELL = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)));

async function npm(cwd: string, ...words: string[]): Promise<string> {
  return (await run('npm', words, { cwd, env: SHELL, maxBuffer: 64 * 1024 * 1024 })).stdout;
}

/** Installs packages, from npm's cache if it has them. Earlier tests have filled it. */
function install(cwd: string, ...packages: string[]): Promise<string> {
  return npm(cwd, 'install', '--prefer-offline', '--no-audit', '--no-fund', ...packages);
}

async function installedIn(folder: string): Promise<Tree> {
  return new Set(packagesIn(JSON.parse(await npm(folder, 'ls', '--all', '--json')) as Listed));
}

interface Lock {
  readonly packages: Readonly<Record<string, { version?: string; dev?: boolean; link?: boolean; peer?: boolean }>>;
}

/** Returns the production packages of the project's lock file. */
function locked(): Tree {
  const { packages } = JSON.parse(textOf('package-lock.json')) as Lock;
  const production = Object.entries(packages).filter(
    ([path, { dev, link }]) => path.includes('node_modules/') && !dev && !link,
  );
  return new Set(production.map(([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`));
}

/** Reduces versions to their first number, because npm installs the newest version that package.json allows. */
const majors = (tree: Tree) => new Set([...tree].map((each) => each.replace(/(@\d+)\..*$/, '$1')));

const EXAMPLES = ['upstream', 'policy', 'plugin', 'supplier'];
const PAGES = ['writing-an-adapter', 'writing-a-policy', 'writing-a-plugin', 'writing-a-driver'].map(
  (name) => `docs/${name}.md`,
);

/** Returns what the YAML block of a page tells the reader to write into one of the files. */
function fragment(page: string, file: string): unknown {
  const [, block = ''] = /^```yaml\n([\s\S]*?)^```$/m.exec(page) ?? [];
  const parts = block.split(/^# (?=\w+\.config\.yml)/m);
  const [, text = ''] = parts.find((part) => part.startsWith(file))?.match(/^.*\n([\s\S]*)$/) ?? [];
  return parse(text) ?? {};
}

/** Merges new settings into existing ones. A new item of a list goes behind the item that it follows in the page. */
function merged(there: unknown, more: unknown): unknown {
  if (Array.isArray(there) && Array.isArray(more)) return mergedLists(there, more);
  if (!isObject(there) || !isObject(more)) return more;
  const both = Object.entries(more).map(([name, value]) => [name, name in there ? merged(there[name], value) : value]);
  return { ...there, ...Object.fromEntries(both) };
}

function mergedLists(there: readonly unknown[], more: readonly unknown[]): unknown[] {
  const whole = [...there];
  const placeOf = (item: unknown) => whole.findIndex((each) => JSON.stringify(each) === JSON.stringify(item));
  for (const [index, item] of more.entries())
    if (placeOf(item) === -1) whole.splice(index === 0 ? whole.length : placeOf(more[index - 1]) + 1, 0, item);
  return whole;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

describe('The package, installed by npm in an empty folder', function () {
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

  it('installs the packages of the lock file and no others', async () => {
    const known = majors(locked());
    const installed = await installedIn(empty);
    expect([...majors(installed)].filter((each) => !known.has(each))).to.deep.equal(['tollgate@0']);
    expect(installed.size).to.be.above(400);
  });

  it("bundles Express Gateway's dependencies once, in exactly the versions of the lock file", async () => {
    const bundled = join(empty, 'node_modules/tollgate/node_modules');
    for (const name of Object.keys(JSON.parse(textOf('package.json')).overrides['express-gateway'])) {
      const wanted = [...locked()].find((each) => each.startsWith(`${name}@`));
      const found = await readFile(join(bundled, name, 'package.json'), 'utf8').catch(() => undefined);
      const version = found === undefined ? undefined : `${name}@${JSON.parse(found).version}`;
      if (wanted !== undefined && version !== undefined) expect(locked()).to.include(version);
      if (wanted === undefined) expect(version, `${name} is never loaded`).to.equal(undefined);
    }
  });

  it('keeps the same packages after another package is installed, and after npm ci', async () => {
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
      gateway = join(empty, 'my-gateway');
      // With a lock file, the quick start would install and build the copy when its files look new.
      await rm(join(folder, 'copy/package-lock.json'));
    });
    after(() => void child?.kill('SIGKILL'));

    for (const [title, place] of [
      ['in a checkout', 'copy'],
      ['where the package is installed', 'empty'],
    ] as const)
      it(`creates, ${title} and with the other commands of the README, a gateway that serves the demo call`, async () => {
        const [port, adminPort, demoPort] = await Promise.all([freePort(), freePort(), freePort()]);
        const ports = { PORT: String(port), ADMIN_PORT: String(adminPort), DEMO_PORT: String(demoPort) };
        const [, commands = ''] = /^```sh\n(npx tollgate init [\s\S]*?)^```$/m.exec(textOf('README.md')) ?? [];
        const shell = spawn('sh', ['-euc', commands], {
          cwd: join(folder, place),
          env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...ports },
          stdio: ['ignore', 'pipe', 'pipe'],
          detached: true,
        });
        const closed = once(shell, 'close');
        let out = '';
        for (const stream of [shell.stdout, shell.stderr])
          stream.on('data', (chunk: Buffer) => (out += chunk.toString()));
        try {
          const [, key] = await Promise.race([
            until('it prints a key', () => /API key +(sk-svc-\S+)/.exec(out), 180_000),
            closed.then(() => expect.fail(out)),
          ]);
          const answer = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
            method: 'POST',
            headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
            body: JSON.stringify({ model: 'demo-model', messages: [{ role: 'user', content: 'Hello' }] }),
          });
          expect(answer.status).to.equal(200);
          expect(Number(answer.headers.get('x-ai-cost'))).to.be.above(0);
          const made = join(folder, place, 'my-gateway');
          expect(existsSync(join(made, '.tollgate'))).to.equal(true);
          expect(out)
            .to.include('not published yet')
            .and.to.include(dirname(await realpath(join(made, 'node_modules/tollgate/package.json'))));
        } finally {
          // As Ctrl-C: the whole group.
          if (shell.exitCode === null && shell.pid !== undefined) process.kill(-shell.pid, 'SIGINT');
          await closed;
        }
      });

    it('writes a valid configuration', async () => {
      const validate = ['--no-install', 'tollgate', 'config', 'validate'];
      expect((await run('npx', validate, { cwd: gateway, env: SHELL })).stdout).to.include('is valid');
    });

    describe('the examples (adapter, policy, plugin, supplier), installed from tarballs in the created folder,', () => {
      const token = 'token-of-the-operator';
      let upstream: TestUpstream;
      let supplier: Server;
      let url: string;
      let adminUrl: string;
      let key: string;

      before(async () => {
        upstream = await startUpstream();
        await install(gateway, tarball, ...(await Promise.all(EXAMPLES.map(packExample))));
        supplier = require(join(gateway, 'node_modules/example-supplier/test/server.js')).exampleServer('secret');
        await once(supplier.listen(0, '127.0.0.1'), 'listening');
        await configure();
        const [port, adminPort] = await Promise.all([freePort(), freePort()]);
        [url, adminUrl] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${adminPort}`];
        const secrets = { ADMIN_TOKEN: token, EXAMPLE_API_KEY: 'ours', EXAMPLE_TOKEN: 'secret' };
        const ports = { PORT: String(port), ADMIN_PORT: String(adminPort), LOG_LEVEL: 'warn' };
        child = spawn(join(gateway, 'node_modules/.bin/tollgate'), ['start'], {
          cwd: gateway,
          env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...ports, ...secrets },
          stdio: ['ignore', 'inherit', 'inherit'],
        });
        await until(
          'it serves',
          () =>
            fetch(`${url}/readyz`).then(
              ({ ok }) => ok,
              () => false,
            ),
          60_000,
        );
        const { id } = await admin('/accounts', { name: 'customer' });
        await admin(`/accounts/${id}/credits`, { amountUsd: '5', idempotencyKey: 'first' });
        ({ key } = await admin(`/accounts/${id}/keys`, { name: 'key' }));
      });
      after(async () => {
        const ended = child && once(child, 'exit');
        child?.kill('SIGTERM');
        await ended;
        await upstream?.stop();
        supplier?.closeAllConnections();
        supplier?.close();
      });

      async function packExample(kind: string): Promise<string> {
        const packed = await npm(join(PROJECT, 'examples', kind), 'pack', '--json', '--pack-destination', folder);
        const [{ filename = '' } = {}] = JSON.parse(packed) as { filename?: string }[];
        return join(folder, filename);
      }

      /** Writes both files as the pages for authors tell, except for the addresses of upstream and supplier. */
      async function configure(): Promise<void> {
        const addresses = { example: { url: upstream.url, allowPrivate: true } };
        const suppliers = { 'example-eu': { url: `http://127.0.0.1:${(supplier.address() as AddressInfo).port}` } };
        const local: Readonly<Record<string, object>> = {
          'gateway.config.yml': { serviceEndpoints: addresses },
          'system.config.yml': { plugins: { sandbox: { suppliers } } },
        };
        for (const [name, ours] of Object.entries(local)) {
          const file = join(gateway, name);
          const told = PAGES.map((page) => fragment(textOf(page), name));
          const whole = [...told, ours].reduce(merged, parse(await readFile(file, 'utf8')) as unknown);
          await writeFile(file, stringify(whole));
        }
      }

      async function ask(base: string, path: string, credential: string, body?: object) {
        const response = await fetch(`${base}${path}`, {
          method: body === undefined ? 'GET' : 'POST',
          headers: { 'content-type': 'application/json', authorization: `Bearer ${credential}` },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
        return { status: response.status, headers: response.headers, text: await response.text() };
      }

      async function admin(path: string, body: object) {
        const { status, text } = await ask(adminUrl, `/admin/v1${path}`, token, body);
        expect(status, text).to.equal(201);
        return JSON.parse(text);
      }

      const call = (content: string) =>
        ask(url, '/v1/chat/completions', key, { model: 'large', messages: [{ role: 'user', content }] });

      it("send a call in the upstream's own format, and charge the exact cost of the call", async () => {
        upstream.always(respond({ body: JSON.parse(textOf('examples/upstream/recordings/text.json')) }));
        const answer = await call('Hello');
        expect(answer.status, answer.text).to.equal(200);
        const { path, headers, json } = upstream.calls.at(-1) ?? expect.fail('the upstream was not asked');
        expect(path).to.equal('/v2/models/large/chat');
        expect(headers['x-example-key']).to.equal('ours');
        expect(json).to.deep.equal({ messages: [{ role: 'user', content: 'Hello' }] });
        // 20 input tokens at 3 USD, 10 from the cache at 0.3 and 2 output tokens at 15, each per million.
        expect(answer.headers.get('x-ai-cost')).to.equal('0.00009300');
      });

      it('refuse a call with the error that the example policy declares', async () => {
        const { status, text } = await call('the falcon flies at noon');
        expect([status, JSON.parse(text).error.code]).to.deep.equal([403, 'WORD_REFUSED']);
      });

      it("answer requests to the endpoint of the example plugin, which uses the plugin's settings", async () => {
        const greetings = await Promise.all(
          ['it', 'fr'].map((each) => ask(url, `/example-plugin?language=${each}`, '')),
        );
        expect(greetings.map(({ text }) => JSON.parse(text).greeting)).to.deep.equal(['ciao', 'good day']);
      });

      it('run a sandbox at the example supplier', async () => {
        const offerings = JSON.parse((await ask(url, '/v1/offerings', key)).text) as { id: string; name: string }[];
        const offering = offerings.find(({ name }) => name === 'example-small');
        const selection = { offeringId: offering?.id };
        const made = await ask(url, '/v1/sandboxes', key, { selection, idempotencyKey: 'one' });
        expect(made.status, made.text).to.equal(202);
        const { id } = JSON.parse(made.text);
        const { text } = await ask(url, `/v1/sandboxes/${id}?waitFor=RUNNING&waitSeconds=30`, key);
        expect(JSON.parse(text)).to.include({ observedState: 'RUNNING', offeringName: 'example-small' });
        expect((await ask(url, `/v1/sandboxes/${id}/terminate`, key, {})).status).to.equal(202);
      });
    });
  });
});
