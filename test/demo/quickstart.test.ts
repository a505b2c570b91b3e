import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { claudeCode } from '../agents/clients/claude-code';
import { codex } from '../agents/clients/codex';
import { opencodeMessages } from '../agents/clients/opencode';
import { SDKS } from '../agents/clients/sdks';
import { exportsOf } from '../agents/page';
import { freePort } from '../support/free-port';
import { findProgram } from '../support/programs';
import { until } from '../support/until';

const REPOSITORY = resolve(__dirname, '../..');

interface Line {
  readonly url: string;
  readonly adminUrl: string;
  readonly key: string;
  readonly accountId: string;
  readonly signInLink: string;
  readonly dataDir: string;
}

interface State {
  readonly accounts: string[];
  readonly keys: string[];
  readonly credits: Record<string, string>;
}

/** The programs that the guide shares with docs/clients.md. */
const PROGRAMS = [
  claudeCode,
  codex,
  opencodeMessages,
  ...SDKS.filter(({ id }) => id === 'anthropic-sdk' || id === 'openai-sdk-chat'),
];

/** Returns the settings of these programs as the guide prints them. */
function settings(url: string): readonly string[] {
  return PROGRAMS.flatMap(({ setup }) => {
    const { env, files } = setup({ url, key: '"$KEY"', model: 'demo-model' });
    // The demo's model has a smaller maximum output than the models of docs/clients.md.
    const texts = Object.values(files).map((text) => text.replace('"output": 32000', '"output": 8192'));
    return [exportsOf(env), ...texts].map((text) => `\n${text.replace(/^(?=.)/gm, '  ')}`);
  });
}

describe('the quick start', () => {
  let root: string;
  let env: Record<string, string>;
  const running: ChildProcess[] = [];

  beforeEach(async () => {
    root = projectWithFakeServer();
    env = {
      PATH: process.env['PATH'] ?? '',
      PORT: String(await freePort()),
      ADMIN_PORT: String(await freePort()),
      DEMO_PORT: String(await freePort()),
    };
  });
  afterEach(async () => {
    for (const child of running.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
    rmSync(root, { recursive: true, force: true });
  });

  const start = (words: readonly string[] = [], more: Record<string, string> = {}) => {
    const child = spawn(process.execPath, ['demo/quickstart.mjs', ...words], { cwd: root, env: { ...env, ...more } });
    running.push(child);
    const said = { out: '', error: '' };
    child.stdout.on('data', (chunk: Buffer) => (said.out += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (said.error += chunk.toString()));
    const ended = once(child, 'close') as Promise<[number | null]>;
    return { child, said, status: async () => (await ended)[0] };
  };
  /** Starts the quick start, waits for the line of --json, and stops it. */
  const lineOf = async (): Promise<Line> => {
    const { child, said, status } = start(['--json']);
    await until('it prints its line', () => said.out.endsWith('}\n'));
    child.kill('SIGTERM');
    assert.equal(await status(), 0);
    return JSON.parse(said.out) as Line;
  };
  const notes = (): string[] => {
    const file = join(root, '.tollgate/notes');
    return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
  };
  const state = (): State => JSON.parse(readFileSync(join(root, '.tollgate/state.json'), 'utf8')) as State;

  it('creates an account with USD 5.00 and an API key, in a folder that only the current user can read', async () => {
    const line = await lineOf();
    assert.deepEqual(line, {
      url: `http://127.0.0.1:${env['PORT']}`,
      adminUrl: `http://127.0.0.1:${env['ADMIN_PORT']}`,
      key: 'sk-svc-1',
      accountId: 'account-1',
      signInLink: `http://127.0.0.1:${env['PORT']}/console/sign-in#token=user-1-1`,
      dataDir: join(root, '.tollgate'),
    });
    assert.deepEqual(state().credits, { 'account-1 quickstart': '5.00' });
    const file = join(root, '.tollgate/quickstart.json');
    assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), { accountId: 'account-1', key: 'sk-svc-1' });
    assert.equal(statSync(file).mode & 0o777, 0o600);
  });

  it('uses the same account and API key at the next start', async () => {
    const first = await lineOf();
    const { signInLink, ...again } = await lineOf();
    assert.deepEqual({ ...again, signInLink: first.signInLink }, first);
    assert.match(signInLink, /token=user-1-2$/);
    assert.deepEqual([state().accounts, state().keys], [['account-1'], ['sk-svc-1']]);
  });

  it('reuses what an earlier start has stored, and creates what is missing, revoked or deleted', async () => {
    await lineOf();
    const file = join(root, '.tollgate/quickstart.json');
    for (const [stored, account, key] of [
      ['{"accountId":"account-1","key":"sk-svc-revoked"}', 'account-1', 'sk-svc-2'],
      ['{"accountId":"account-1"}', 'account-1', 'sk-svc-3'],
      ['{"accountId":"account-9","key":"sk-svc-3"}', 'account-2', 'sk-svc-4'],
      ['not JSON', 'account-3', 'sk-svc-5'],
    ] as const) {
      writeFileSync(file, stored);
      const line = await lineOf();
      assert.deepEqual([line.accountId, line.key], [account, key], stored);
    }
  });

  it('shows the API key at the first start and the path of its file later, and prints commands that work unchanged', async () => {
    findProgram('curl');
    for (const isFirst of [true, false]) {
      const { child, said, status } = start([], { OPENAI_API_KEY: 'set' });
      await until('it has told everything', () => said.out.includes('Ctrl-C ends'));
      assert.equal(said.out.includes('sk-svc-1'), isFirst);
      assert.match(said.out, /quickstart\.json/);
      assert.match(said.out, /^ {2}console {2}http:\/\/127\.0\.0\.1:\d+\/console\/sign-in#token=user-1-\d$/m);
      for (const lines of settings(`http://127.0.0.1:${env['PORT']}`)) assert.ok(said.out.includes(lines), lines);
      assert.match(said.out, /ANTHROPIC_API_KEY is not set, OPENAI_API_KEY is set: live/);
      const setKey = /^ {2}(KEY=.*)$/m.exec(said.out)?.[1] ?? '';
      const setId = /^ {2}(ID=\$\([\s\S]*?readFileSync\(0\)\).id'\))$/m.exec(said.out)?.[1] ?? '';
      const commands = [...said.out.matchAll(/^ {2}(curl .*\\\n.*|curl .*)$/gm)].map((match) => match[1] ?? '');
      assert.equal(commands.length, 15);
      for (const command of commands) {
        const { stdout } = await promisify(execFile)('sh', [
          '-c',
          `${setKey}\n${command.includes('$ID') ? setId : ''}\n${command} --fail`,
        ]);
        assert.ok(stdout.length > 0, command);
      }
      child.kill('SIGINT');
      assert.equal(await status(), 0);
    }
  });

  it('stops the gateway first, then the demo upstream, when it is stopped', async () => {
    await lineOf();
    assert.deepEqual(notes(), ['gateway stopped', 'demo stopped']);
  });

  it('stops its programs in order even if the quick start itself is killed', async () => {
    const { child, said } = start(['--json']);
    await until('it prints its line', () => said.out.endsWith('}\n'));
    child.kill('SIGKILL');
    await until('both have stopped', () => notes().length === 2, 30_000);
    assert.deepEqual(notes().sort(), ['demo stopped', 'gateway stopped']);
    // The programs have freed their ports.
    assert.equal((await lineOf()).key, 'sk-svc-1');
  });

  for (const [title, fake, exits, said] of [
    [
      'exits with 0',
      {},
      0,
      /ok {6}call in one piece: 1 tokens.*\nok {6}streamed call: 3 events.*\nok {6}embeddings: 2 vectors, 5 tokens for USD 0\.00001000/,
    ],
    ['exits with 1 if one is incomplete', { FAKE: 'cut' }, 1, /failed {2}streamed call/],
  ] as const)
    it(`makes an unstreamed, a streamed and an embeddings call with --check, and ${title}`, async () => {
      const started = start(['--check'], fake);
      assert.equal(await started.status(), exits);
      assert.match(started.said.error, said);
    });

  it('reports a program that exits unexpectedly, with the last lines of its output', async () => {
    const { said, status } = start([], { FAKE: 'dies' });
    assert.equal(await status(), 1);
    assert.match(said.error, /The gateway ended \(78\)\. Its last lines:\n {2}gateway\.config\.yml, line 3/);
  });

  for (const name of ['PORT', 'ADMIN_PORT', 'DEMO_PORT']) {
    it(`reports ${name} if that port is in use, and starts nothing`, async () => {
      const server = createServer().listen(Number(env[name]), '127.0.0.1');
      await once(server, 'listening');
      const { said, status } = start();
      assert.equal(await status(), 1);
      assert.match(said.error, new RegExp(`Port ${env[name]} is taken\\. Set ${name} `));
      server.close();
    });
  }

  it('installs and builds only what is missing or older than its source files', async () => {
    const npm = join(root, 'bin/npm');
    mkdirSync(join(root, 'bin'));
    writeFileSync(npm, '#!/bin/sh\necho "npm $*"\n', { mode: 0o755 });
    const path = { PATH: `${join(root, 'bin')}:${env['PATH']}` };
    const future = new Date(Date.now() + 60_000);
    const wanted = async (): Promise<string[]> => {
      const { said, status } = start(['--check'], path);
      await status();
      return [...said.error.matchAll(/^npm (\S+ ?\S*)/gm)].map((match) => match[1] ?? '');
    };
    assert.deepEqual(await wanted(), []);
    utimesSync(join(root, 'package-lock.json'), future, future);
    assert.deepEqual(await wanted(), ['ci --no-audit']);
    rmSync(join(root, 'node_modules'), { recursive: true });
    utimesSync(join(root, 'core/some.ts'), future, future);
    assert.deepEqual(await wanted(), ['ci --no-audit', 'run build']);
  });

  it('prints its help on request, and refuses unknown arguments', async () => {
    const help = start(['--help']);
    assert.equal(await help.status(), 0);
    for (const word of ['--check', '--json', 'PORT', 'ADMIN_PORT', 'DEMO_PORT', 'DATA_DIR']) {
      assert.ok(help.said.out.includes(word), word);
    }
    const unknown = start(['--fast']);
    assert.equal(await unknown.status(), 2);
    assert.match(unknown.said.error, /no option --fast/);
    const wrong = start([], { PORT: 'http' });
    assert.equal(await wrong.status(), 2);
    assert.match(wrong.said.error, /PORT is "http"/);
  });
});

/** Makes a project after installation and build, with fake programs. */
function projectWithFakeServer(): string {
  const root = mkdtempSync(join(tmpdir(), 'tollgate-quickstart-'));
  for (const folder of ['demo', 'core', 'dist/demo', 'node_modules'])
    mkdirSync(join(root, folder), { recursive: true });
  writeFileSync(join(root, 'package.json'), '{}');
  writeFileSync(join(root, 'package-lock.json'), '{}');
  writeFileSync(join(root, 'core/some.ts'), '');
  cpSync(join(REPOSITORY, 'demo/quickstart.mjs'), join(root, 'demo/quickstart.mjs'));
  cpSync(join(REPOSITORY, 'demo/quickstart'), join(root, 'demo/quickstart'), { recursive: true });
  const fake = readFileSync(join(__dirname, 'fake-server.cjs'));
  writeFileSync(join(root, 'dist/server.js'), fake);
  writeFileSync(join(root, 'dist/demo/upstream.js'), fake);
  writeFileSync(join(root, 'node_modules/.package-lock.json'), '{}');
  const later = new Date(Date.now() + 1_000);
  for (const made of ['dist/server.js', 'dist/demo/upstream.js', 'node_modules/.package-lock.json']) {
    utimesSync(join(root, made), later, later);
  }
  return root;
}
