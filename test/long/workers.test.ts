import { existsSync, readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { ask, PATH } from '../support/calls';
import { TestCollector } from '../support/collector';
import { freePort } from '../support/free-port';
import { failToStart, MODEL, startGateway, type TestGateway } from '../support/gateway';
import { settlesWithin, until } from '../support/until';
import { messagesAnswer, messagesStream, startUpstream, type TestUpstream } from '../support/upstream';

const USAGE = { input: 10, output: 5 };
const COST = '0.00010500';
const COST_E8 = 10_500;
const LEASE_SECONDS = 5;
const CALLERS = 8;
const STREAMS = 6;
/** How long a stopping worker may stay, because idle connections of clients keep it for 75 s. */
const IDLE_MS = 90_000;
/** Headers for a call on a new connection, which any worker may accept. */
const ANEW = { connection: 'close' };
const ANSWERED = 'tollgate_upstream_attempts_total{upstream="acme",outcome="answered"}';
const ENDED =
  'tollgate_calls_total{route="/v1/messages",protocol="messages",strategy="quality",status="2xx",code="none"}';
const ofAccount = (accountId: string) => `tollgate_account_calls_total{account="${accountId}"}`;

let upstream: TestUpstream;
before(async () => {
  upstream = await startUpstream();
});
beforeEach(() => {
  upstream.reset();
  upstream.always(messagesAnswer({ usage: USAGE }));
});
afterEach(() => callers.abort());
after(() => upstream?.stop());

/** Aborted after each test, because the callers of a failed test would call for ever. */
let callers = new AbortController();

async function start(env: NodeJS.ProcessEnv = {}): Promise<TestGateway> {
  const gateway = await startGateway({
    stores: 'real',
    upstreams: { acme: { url: upstream.url, timeouts: { connect: '30s', headers: '60s', idle: '60s' } } },
    system: { ledger: { leaseSeconds: LEASE_SECONDS } },
    env: { WORKERS: '2', ADMIN_PORT: String(await freePort()), ...env },
  });
  await bothServe(gateway);
  return gateway;
}

/** Returns the process ids of the workers, the oldest first. */
function workersOf({ pid }: TestGateway): readonly number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
}

function isThere(pid: number): boolean {
  return existsSync(`/proc/${pid}`);
}

/** Waits until two workers serve, and returns their process ids. A worker registers as a node when it serves. */
function bothServe(gateway: TestGateway): Promise<readonly number[]> {
  return until(
    'two workers serve',
    async () => {
      const { json } = await gateway.admin('GET', '/admin/v1/config/status');
      const nodes = json.nodes.map(({ name }: { name: string }) => Number(name.split(':').at(-1)));
      const workers = workersOf(gateway).filter((pid) => nodes.includes(pid));
      return workers.length === 2 ? workers : undefined;
    },
    30_000,
  );
}

function linesOf(gateway: TestGateway, message: string): readonly Record<string, unknown>[] {
  const lines = gateway.output().split('\n');
  return lines.filter((line) => line.includes(`"msg":"${message}`)).map((line) => JSON.parse(line));
}

async function metric(gateway: TestGateway, name: string): Promise<number> {
  const { text } = await gateway.admin('GET', '/metrics');
  const line = text.split('\n').find((each) => each.startsWith(`${name} `));
  return Number(line?.split(' ')[1] ?? 0);
}

/** Calls repeatedly on new and on kept connections. An answer is `served`, an error, or `broken` if the connection was closed. */
async function startCallers(gateway: TestGateway, key: string) {
  const answers: string[] = [];
  callers = new AbortController();
  const { signal } = callers;
  const caller = async (headers: Record<string, string>) => {
    while (!signal.aborted) {
      const answer = await gateway.call(PATH.messages, { key, body: ask(), headers }).then(
        ({ status, text }) => (status === 200 ? 'served' : `${status} ${text}`),
        () => 'broken',
      );
      // Redis was late because the machine is busy. Nothing was done, and the caller repeats its request.
      if (!answer.includes('LEDGER_UNAVAILABLE')) answers.push(answer);
    }
  };
  const calling = Array.from({ length: CALLERS }, (_, index) => caller(index % 2 === 0 ? ANEW : {}));
  const more = () => {
    const before = answers.length;
    return until('calls are answered', () => answers.length > before + 4 * CALLERS);
  };
  const stop = async () => {
    callers.abort();
    await Promise.all(calling);
    return answers;
  };
  await more();
  return { more, stop };
}

/** Opens streams on separate connections, so that both workers serve some. */
async function startStreams(gateway: TestGateway, key: string) {
  const texts = Array.from({ length: 60 }, () => 'word ');
  upstream.always(messagesStream({ texts, delayMs: 30, usage: USAGE }));
  const running = Array.from({ length: STREAMS }, () =>
    gateway.call(PATH.messages, { key, body: ask({ stream: true }), headers: ANEW }),
  );
  await upstream.call(STREAMS);
  return async () => {
    for (const { text } of await Promise.all(running)) expect(text).to.include('message_stop').and.include('"cost":');
  };
}

/** Returns how many calls were charged once nothing is held. Asserts that each has one record and that the ledger agrees. */
async function chargedCalls(gateway: TestGateway, key: string, served: number): Promise<number> {
  const records = async () => {
    const { text } = await gateway.call('/v1/usage.csv', { method: 'GET', key });
    return text.split('\n').filter((line) => line.includes(COST)).length;
  };
  await until('each served call has its record', async () => (await records()) >= served, 30_000);
  const balance = await until(
    'nothing is held',
    async () => {
      const answer = await gateway.balance(key);
      return answer.heldUsd === '0.00000000' ? answer : undefined;
    },
    30_000,
  );
  const charged = (10e8 - Math.round(Number(balance.balanceUsd) * 1e8)) / COST_E8;
  await until('each charge has its record', async () => (await records()) === charged, 30_000);
  const { status, json } = await gateway.admin('GET', '/admin/v1/ledger/verify');
  expect([status, json.items]).to.deep.equal([200, []]);
  return charged;
}

describe('Two workers', function () {
  this.timeout(180_000);
  let both: TestGateway;
  let key: string;
  let accountId: string;

  before(async () => {
    both = await start();
  });
  beforeEach(async () => {
    ({ key, accountId } = await both.newCustomer('10'));
  });
  after(() => both?.stop());

  it('serve calls at one address, count them together, and log one start', async () => {
    for (let count = 0; count < 20; count += 1)
      expect((await both.call(PATH.messages, { key, body: ask(), headers: ANEW })).status).to.equal(200);
    // Each worker has its own connection to the upstream.
    expect(upstream.openConnections).to.equal(2);
    expect(await chargedCalls(both, key, 20)).to.equal(20);
    for (const name of [ANSWERED, ENDED, ofAccount(accountId)]) expect(await metric(both, name), name).to.equal(20);
    expect(
      await metric(
        both,
        'tollgate_call_duration_seconds_count{route="/v1/messages",protocol="messages",strategy="quality"}',
      ),
    ).to.equal(20);
    expect(await metric(both, 'tollgate_ledger_ready')).to.equal(1);
    const lines = await until('each call has its line', () => {
      const calls = linesOf(both, 'call"');
      return calls.length === 20 ? calls : undefined;
    });
    expect(new Set(lines.map(({ worker }) => worker))).to.deep.equal(new Set(workersOf(both)));
    expect(linesOf(both, 'ready').map(({ workers }) => workers)).to.deep.equal([2]);
  });

  it('both apply a configuration after one of them was asked to reload, and write one row into the audit log', async () => {
    await both.changeConfiguration((config) => {
      config['serviceEndpoints'].acme.models[MODEL].aliases = ['new-name'];
    });
    expect((await both.admin('POST', '/admin/v1/config/reload')).status).to.equal(200);
    const body = ask({ model: 'new-name' });
    for (let count = 0; count < 6; count += 1)
      expect((await both.call(PATH.messages, { key, body, headers: ANEW })).status).to.equal(200);
    const { items } = (await both.admin('GET', '/admin/v1/audit?subject=config&limit=10')).json;
    expect(items.map(({ actor }: { actor: string }) => actor)).to.deep.equal(['admin']);
  });

  it('are replaced on SIGHUP, and no call or open stream is lost', async () => {
    const before = workersOf(both);
    const counted = await metric(both, ANSWERED);
    upstream.next(messagesStream({ texts: Array.from({ length: 400 }, () => 'word '), delayMs: 30, usage: USAGE }));
    const stream = both.call(PATH.messages, { key, body: ask({ stream: true }), headers: ANEW });
    await upstream.call(1);
    const { stop } = await startCallers(both, key);
    both.process.kill('SIGHUP');
    await until('all are new', () => linesOf(both, 'rolling restart: all').length === 1, 60_000);
    expect(workersOf(both).filter((pid) => !before.includes(pid))).to.have.length(2);
    await until('the old ones are gone', () => !before.some(isThere), IDLE_MS);
    const answers = await stop();
    expect((await stream).text).to.include('message_stop');
    expect(answers.filter((answer) => answer !== 'served')).to.deep.equal([]);
    expect(await chargedCalls(both, key, answers.length + 1)).to.equal(answers.length + 1);
    expect(await metric(both, ANSWERED)).to.equal(counted + answers.length + 1);
  });

  it('charge every call once when one worker is killed, because other workers take over its holds and settlements', async () => {
    const { more, stop } = await startCallers(both, key);
    const [kept, killed] = workersOf(both);
    process.kill(Number(killed), 'SIGKILL');
    await until('it is gone', () => !isThere(Number(killed)));
    await more();
    const now = await bothServe(both);
    expect(now).to.include(kept);
    const stopped = stop();
    // A client whose connection the killed worker just accepted must not wait until the client's own timeout.
    expect(await settlesWithin(30_000, stopped)).to.equal(true);
    const answers = await stopped;
    const broken = answers.filter((answer) => answer === 'broken').length;
    expect(broken).to.be.most(CALLERS);
    expect(answers.filter((answer) => answer !== 'served' && answer !== 'broken')).to.deep.equal([]);
    const served = answers.length - broken;
    expect(await chargedCalls(both, key, served)).to.be.within(served, answers.length);
    const folder = join(both.dataFolder, 'spool');
    const lockOf = async (name: string) => JSON.parse(await readFile(join(folder, name, 'lock'), 'utf8'));
    for (const name of await readdir(folder)) expect(isThere((await lockOf(name)).pid)).to.equal(true);
  });

  it('keep serving the admin listener when the worker that serves it is killed', async () => {
    for (const worker of workersOf(both)) {
      process.kill(worker, 'SIGKILL');
      await until('it is gone', () => !isThere(worker));
      await until('the admin listener is served', async () => (await both.admin('GET', '/metrics')).status === 200);
      await bothServe(both);
    }
  });
});

describe('Traces of two workers', function () {
  this.timeout(180_000);

  it('include every span of both workers, even the last ones before the workers stop', async () => {
    const collector = await TestCollector.start();
    const traced = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '60000' });
    const { key } = await traced.newCustomer('10');
    const call = () => traced.call(PATH.messages, { key, headers: ANEW, body: ask() });
    const answers = await Promise.all(Array.from({ length: 40 }, call));
    expect(answers.filter(({ status }) => status !== 200)).to.deep.equal([]);
    expect(await traced.stop()).to.equal(0);
    await collector.stop();
    expect(collector.spans).to.have.lengthOf(80);
    expect(new Set(collector.spans.map(({ resource }) => resource['process.pid']))).to.have.lengthOf(2);
  });
});

describe('Workers that end', function () {
  this.timeout(180_000);
  let both: TestGateway;
  let key: string;
  let accountId: string;

  beforeEach(async () => {
    both = await start();
    ({ key, accountId } = await both.newCustomer('10'));
  });
  afterEach(() => both?.stop());

  it('keep their counters in the metrics, and are replaced after growing delays if they end repeatedly', async () => {
    for (let count = 0; count < 10; count += 1) await both.call(PATH.messages, { key, body: ask(), headers: ANEW });
    for (const name of [ANSWERED, ENDED, ofAccount(accountId)]) expect(await metric(both, name), name).to.equal(10);
    for (const times of [1, 2, 3]) {
      const youngest = Number(workersOf(both).at(-1));
      process.kill(youngest, 'SIGKILL');
      await until(
        'it is missed',
        () => linesOf(both, 'a worker ended and is replaced').length === times && !isThere(youngest),
      );
      await bothServe(both);
    }
    for (const name of [ANSWERED, ENDED, ofAccount(accountId)]) expect(await metric(both, name), name).to.equal(10);
    expect(linesOf(both, 'a worker ended and is replaced').map(({ waitMs }) => waitMs)).to.deep.equal([
      0, 1_000, 2_000,
    ]);
  });

  it('finish their streams after SIGTERM to every process, and the exit status is 0', async () => {
    const expectWhole = await startStreams(both, key);
    const workers = workersOf(both);
    // A service manager may send SIGTERM to all processes of a service.
    for (const pid of [both.pid, ...workers]) process.kill(pid, 'SIGTERM');
    await expectWhole();
    expect(await both.ended).to.equal(0);
    expect(workers.filter(isThere)).to.deep.equal([]);
  });

  it('finish their streams after the primary process was killed', async () => {
    const expectWhole = await startStreams(both, key);
    const workers = workersOf(both);
    both.process.kill('SIGKILL');
    await expectWhole();
    await until('they have ended', () => !workers.some(isThere), 20_000);
  });
});

describe('The number of workers', () => {
  const upstreams = { acme: { url: 'http://127.0.0.1:1' } };

  it('is the number of cores with WORKERS=auto', async () => {
    const gateway = await startGateway({ stores: 'real', upstreams, env: { WORKERS: 'auto' } });
    const cores = availableParallelism();
    expect(linesOf(gateway, 'ready')[0]?.['workers']).to.equal(cores === 1 ? undefined : cores);
    expect(await gateway.stop()).to.equal(0);
  });

  for (const WORKERS of ['0', 'x', '1.5', '257']) {
    it(`makes the start fail if it is "${WORKERS}"`, async () => {
      const { code, output } = await failToStart({ stores: 'real', upstreams, env: { WORKERS } });
      expect(code).to.equal(78);
      expect(output).to.include(`WORKERS is "${WORKERS}", but it must be auto or a whole number from 1 to 256.`);
    });
  }

  it('does not change the exit status of a failed start, whose reason is logged only once', async () => {
    const configure = () => 'http: [';
    const { code, output } = await failToStart({ stores: 'real', upstreams, configure, env: { WORKERS: '2' } });
    expect(code).to.equal(78);
    expect(output.match(/tollgate cannot start/g)).to.have.length(1);
  });
});
