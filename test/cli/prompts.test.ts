import { spawn } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { temporaryFolder } from '../support/configuration-folder';
import { PROJECT } from '../support/sources';

const STAGES = [1, 10, 100].map((share) => ({ share, holdSeconds: 60 }));
const COUNTS = { calls: 0, errors: 0, errorRate: null, callersHurt: 0, p95FirstTokenMs: null, meanCostUsd: null };
const GROUPS = { control: COUNTS, treatment: COUNTS, shadow: COUNTS };
const ROLLOUT = {
  name: 'next',
  change: 'c',
  status: 'running',
  stage: 1,
  share: 1,
  stickyBy: 'account',
  stages: STAGES,
  stageEndsAt: null,
  waitsFor: null,
  reason: null,
  inStage: GROUPS,
  inAll: GROUPS,
};
const PLAN = {
  applied: false,
  number: null,
  newest: 1,
  revision: 'r',
  base: { number: 1, revision: 'b' },
  changes: [{ what: 'a price', before: '1', after: '2' }],
  warnings: [],
  objections: [],
};
const NODE = { node: 'n', name: 'gateway-1', source: 'database', number: 2, revision: 'r', since: 's' };

/** Runs commands that ask for confirmation on a terminal made by `script`. */
describe('a command that asks for confirmation', function () {
  this.timeout(60_000);
  let server: Server;
  let environment: NodeJS.ProcessEnv;
  let orders: { path: string; body: Record<string, unknown> }[] = [];

  before(async () => {
    server = createServer(async (request, response) => {
      const path = request.url ?? '';
      const body = (JSON.parse((await text(request)) || '{}') ?? {}) as Record<string, unknown>;
      if (request.method === 'POST' && body['dryRun'] !== true) orders.push({ path, body });
      const nodes = [{ ...NODE, restartNeeded: [], failure: null }];
      const answer = path.includes('/rollouts/')
        ? ROLLOUT
        : path.endsWith('/status')
          ? { source: 'database', newest: { number: 2, revision: 'r' }, nodes }
          : { ...PLAN, ...(body['dryRun'] !== true && { applied: true, number: 2 }) };
      response.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
    });
    await new Promise<void>((done) => void server.listen(0, '127.0.0.1', done));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    environment = { PATH: process.env['PATH'], TERM: 'dumb', TOLLGATE_URL: url, TOLLGATE_TOKEN: 'any' };
  });
  beforeEach(() => {
    orders = [];
  });
  after(() => {
    server?.closeAllConnections();
    server?.close();
  });

  const program = [process.execPath, join(PROJECT, 'dist/cli/tollgate.js')];

  /** Runs a command and types the answer when it asks. Without an answer the command has no terminal. */
  async function run(args: readonly string[], answer?: string): Promise<{ status: number | null; shown: string }> {
    const [name = '', ...rest] = program;
    const line = [...program, ...args].map((each) => `'${each}'`).join(' ');
    const child =
      answer === undefined
        ? spawn(name, [...rest, ...args], { env: environment })
        : spawn('script', ['--quiet', '--return', '--command', line, '/dev/null'], { env: environment });
    let shown = '';
    let isAnswered = answer === undefined;
    const see = (chunk: Buffer) => {
      shown += chunk.toString();
      if (isAnswered || !shown.includes('[y/N]')) return;
      isAnswered = true;
      child.stdin.write(answer ?? '');
    };
    child.stdout.on('data', see);
    child.stderr.on('data', see);
    if (answer === undefined) child.stdin.end();
    const patience = setTimeout(() => child.kill('SIGKILL'), 40_000);
    const status = await new Promise<number | null>((done) => void child.once('close', done));
    clearTimeout(patience);
    return { status, shown };
  }

  it('makes the change if the operator answers yes', async () => {
    const { status, shown } = await run(['rollout', 'promote', 'next'], 'y\n');
    expect(shown).to.contain('Begin stage 2 of 3 of next now: 10 % by account? [y/N]');
    expect([status, orders]).to.deep.equal([0, [{ path: '/admin/v1/rollouts/next/promote', body: { stage: 1 } }]]);
    const file = join(temporaryFolder({ 'new.yml': 'http: {}' }), 'new.yml');
    const applied = await run(['config', 'apply', '--from', file], 'yes\n');
    expect(applied.shown).to.match(
      /a price +1 +2[\s\S]*Apply it to every node\? \[y\/N\][\s\S]*Revision 2 \(r\) is applied/,
    );
    expect([applied.status, orders.length]).to.deep.equal([0, 2]);
  });

  it('changes nothing, and reports that, if the operator answers no, ends the input or presses Ctrl-C', async () => {
    const no = await run(['rollout', 'rollback', 'next'], 'n\n');
    expect(no.shown).to.match(/instead of 1 % by account with it\? \[y\/N\][\s\S]*tollgate: Nothing was changed\./);
    const [endOfInput, interrupt] = ['\u0004', '\u0003'];
    const ended = await run(['rollout', 'promote', 'next'], endOfInput);
    const interrupted = await run(['config', 'apply', '--from', '/dev/null'], interrupt);
    expect(ended.shown).to.contain('tollgate: Nothing was changed.');
    expect(interrupted.shown).to.contain('tollgate: Nothing was applied.');
    expect([no.status, ended.status, interrupted.status, orders]).to.deep.equal([1, 1, 1, []]);
  });

  it('changes nothing without a terminal, exits with 2 and names the option --yes', async () => {
    const { status, shown } = await run(['rollout', 'rollback', 'next']);
    expect([status, orders]).to.deep.equal([2, []]);
    expect(shown).to.contain('tollgate: this is not a terminal, so no confirmation is possible: add --yes.');
    const told = await run(['rollout', 'rollback', 'next', '--yes', '--reason', 'r']);
    expect([told.status, orders]).to.deep.equal([
      0,
      [{ path: '/admin/v1/rollouts/next/rollback', body: { reason: 'r' } }],
    ]);
  });
});
