import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseDocument } from 'yaml';
import { freePort } from '../../test/support/free-port';
import { startPostgres } from '../../test/support/postgres';
import type { TestRedis } from '../../test/support/redis';
import { until } from '../../test/support/until';
import { CHAT, MESSAGES, MODEL, type Protocol, RESPONSES } from '../bodies';
import { childPids, quiet } from '../measure';
import { NotAvailable, PROJECT_FOLDER, type Program, type Rig } from '../rig';
import { zipfDraws } from '../zipf';
import type { RunningSubject, StartOptions, Subject } from './subject';

/** Tollgate with its full pipeline: key, routing, reserve and settle in Redis, metering, usage records in Postgres. */
export const tollgate: Subject = {
  name: 'tollgate',
  summary: 'Tollgate, everything on, through its fast lane',
  isNode: true,
  streams: true,
  start: (rig, options) => startTollgate(rig, options, { fastLane: true }),
};

/** Tollgate from the checkout in the option `before`, to measure the effect of a change in one run. */
export const tollgateBefore: Subject = {
  name: 'tollgate-before',
  summary: 'the Tollgate of the checkout that --before names, as it is shipped',
  isNode: true,
  streams: true,
  start: (rig, options) => startTollgate(rig, options, { fastLane: true, checkout: rig.options.before }),
};

export const tollgateExpress: Subject = {
  name: 'tollgate-express',
  summary: "the same, through Express Gateway's own way",
  isNode: true,
  streams: true,
  start: (rig, options) => startTollgate(rig, options, { fastLane: false }),
};

/** Tollgate with calls of the protocol Responses, to compare it with chat in one run. */
export const tollgateResponses: Subject = {
  name: 'tollgate-responses',
  summary: 'Tollgate, called and answered in the Responses protocol',
  isNode: true,
  streams: true,
  only: ['json', 'latency', 'stream', 'agents'],
  start: (rig, options) => startTollgate(rig, options, { fastLane: true, protocol: RESPONSES }),
};

/** Tollgate with calls of the protocol Messages, as Claude Code makes them. */
export const tollgateMessages: Subject = {
  ...tollgateResponses,
  name: 'tollgate-messages',
  summary: 'Tollgate, called and answered in the Messages protocol',
  only: ['agents'],
  start: (rig, options) => startTollgate(rig, options, { fastLane: true, protocol: MESSAGES }),
};

/** Tollgate with as many upstreams and connections as `tollgate-wide`, but one candidate per call: only one upstream has the requested model. */
export const tollgateSpread: Subject = {
  name: 'tollgate-spread',
  summary: 'the same with 50 upstreams of 200 models each, and one candidate for each call',
  isNode: true,
  streams: true,
  only: ['routing'],
  start: (rig, options) => startTollgate(rig, options, { fastLane: true, upstreams: 50, models: 200, isSpread: true }),
};

/** Tollgate with fifty candidates for every call, and ten thousand further prices in the configuration. */
export const tollgateWide: Subject = {
  name: 'tollgate-wide',
  summary: 'the same with 50 upstreams of 200 models each',
  isNode: true,
  streams: true,
  only: ['routing'],
  start: (rig, options) => startTollgate(rig, options, { fastLane: true, upstreams: 50, models: 200 }),
};

/** Tollgate with a rollout that has half of the calls in each group. The rollout has every guard (a comparison of both groups that can stop the rollout). */
export const tollgateRollout: Subject = {
  name: 'tollgate-rollout',
  summary: 'the same with a rollout under way: half of the calls in its treatment',
  isNode: true,
  streams: true,
  only: ['rollout'],
  start: (rig, options) => startTollgate(rig, options, { fastLane: true, upstreams: 2, rollout: ROLLOUT }),
};

/** Tollgate with a rollout that mirrors every call to the treatment, up to a limit of simultaneous mirrored calls. */
export const tollgateShadow: Subject = {
  name: 'tollgate-shadow',
  summary: 'the same with a rollout that only mirrors: every call is sent twice and answered once',
  isNode: true,
  streams: true,
  only: ['rollout'],
  start: (rig, options) =>
    startTollgate(rig, options, {
      fastLane: true,
      upstreams: 2,
      rollout: { ...ROLLOUT, stages: [{ share: 0, hold: '24h' }], shadow: 100 },
    }),
};

/** The accounts and keys that the calls use in turn. With a single busy key, the bench would show gains that only this key has. */
export const KEYS = { accounts: 4, keysOfEach: 4 };

export const tollgateKeys: Subject = {
  name: 'tollgate-keys',
  summary: 'the same, called with 16 keys of 4 accounts in turn',
  isNode: true,
  streams: true,
  only: ['governed'],
  start: (rig, options) => startTollgate(rig, options, { fastLane: true, callers: KEYS }),
};

export const tollgateKeysBefore: Subject = {
  ...tollgateKeys,
  name: 'tollgate-keys-before',
  summary: 'that of the checkout that --before names',
  start: (rig, options) => startTollgate(rig, options, { fastLane: true, callers: KEYS, checkout: rig.options.before }),
};

/** Accounts of which a few are busy and most rarely call: a Zipf distribution with exponent `s`. */
export const ACCOUNTS = { count: 10_000, s: 1.1, seed: 22 };

export const tollgateAccounts: Subject = {
  name: 'tollgate-accounts',
  summary: `the same, called by ${ACCOUNTS.count} accounts, drawn by Zipf's law`,
  isNode: true,
  streams: true,
  only: ['accounts'],
  start: (rig, options) => startAccounts(rig, options),
};

export const tollgateAccountsBefore: Subject = {
  ...tollgateAccounts,
  name: 'tollgate-accounts-before',
  summary: 'that of the checkout that --before names',
  start: (rig, options) => startAccounts(rig, options, rig.options.before),
};

async function startAccounts(rig: Rig, options: StartOptions, checkout?: string): Promise<RunningSubject> {
  const callers = { accounts: ACCOUNTS.count, keysOfEach: 1 };
  const running = await startTollgate(rig, options, { fastLane: true, callers, checkout });
  const { keys = [] } = running;
  await quiet([...running.pids, ...running.storePids], 120_000);
  const draws = zipfDraws(100_000, { of: keys.length, ...ACCOUNTS });
  return { ...running, keys: draws.flatMap((at) => keys[at] ?? []) };
}

export const tollgateWorkers: Subject = {
  name: 'tollgate-workers',
  summary: 'the same with WORKERS=2',
  isNode: true,
  streams: true,
  only: ['workers'],
  start: (rig, options) => startTollgate(rig, options, { fastLane: true, workers: 2 }),
};

export const tollgateUnobserved: Subject = {
  name: 'tollgate-unobserved',
  summary: 'the same with `log.calls: 0`, and without traces',
  isNode: true,
  streams: true,
  only: ['observed'],
  start: (rig, options) => startTollgate(rig, options, { fastLane: true, loggedCalls: 0 }),
};

export const tollgateObserved: Subject = {
  name: 'tollgate-observed',
  summary: 'the same with `log.calls: 1`, and traces of 1 % of the calls',
  isNode: true,
  streams: true,
  only: ['observed'],
  start: async (rig, options) => {
    const collector = await rig.program('collector.mjs');
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await collector.message<number>('port')}`,
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.01',
    };
    return startTollgate(rig, options, { fastLane: true, loggedCalls: 1, logLevel: 'info', env });
  },
};

const ROLLOUT = {
  change: { upstreams: { model: MODEL, add: ['bench-1'] } },
  stickyBy: 'request',
  stages: [{ share: 50, hold: '24h' }],
  guards: {
    errorRate: { above: 0.5, minCalls: 1_000 },
    p95FirstTokenMs: { times: 1_000, minCalls: 1_000 },
    costRatio: { times: 1_000, minCalls: 1_000 },
  },
};

interface Wanted {
  readonly fastLane: boolean;
  /** The folder of another built checkout. Default: this one. */
  readonly checkout?: string | undefined;
  /** The number of configured upstreams. All of them are the same server. */
  readonly upstreams?: number;
  /** The number of models of each upstream. */
  readonly models?: number;
  /** Whether calls request as many different models as there are upstreams. Only one upstream serves each model. */
  readonly isSpread?: boolean;
  readonly rollout?: object;
  /** The protocol of the calls. Default: chat. */
  readonly protocol?: Protocol;
  /** The accounts and keys that call. Default: one key of one account. */
  readonly callers?: Callers;
  readonly limits?: StartOptions['limits'];
  /** The share of calls that the gateway logs, from 0 to 1. Default: as in the shipped configuration. */
  readonly loggedCalls?: number;
  /** The log level of the gateway. Default: `warn`, which logs no calls. */
  readonly logLevel?: string;
  /** Further environment variables of the gateway. */
  readonly env?: Readonly<Record<string, string>>;
  /** The number of processes that serve calls. Default: the gateway's own default. */
  readonly workers?: number;
}

interface Callers {
  readonly accounts: number;
  readonly keysOfEach: number;
}

/** The credit of each account, in USD. */
export const CREDIT_USD = '1000000';

/** An account with money and one of its keys. */
export type Customer = Readonly<Record<'accountId' | 'keyId' | 'key', string>>;

/** A running gateway, with accounts that have money and keys. */
export interface RunningTollgate {
  readonly url: string;
  readonly adminUrl: string;
  readonly adminToken: string;
  readonly databaseUrl: string;
  /** The first of the customers that the bench created. */
  readonly customer: Customer;
  readonly customers: readonly Customer[];
  readonly program: Program;
  readonly redis: TestRedis;
  readonly storePids: readonly number[];
  /** Starts the gateway again with the same data, after its processes have exited. */
  restart(): Promise<Program>;
}

export async function runTollgate(
  rig: Rig,
  { upstreamUrl, nodeArgs = [], ...wanted }: Wanted & { upstreamUrl: string; nodeArgs?: readonly string[] },
): Promise<RunningTollgate> {
  const { checkout } = wanted;
  const dist = checkout === undefined ? await rig.dist() : join(checkout, 'dist');
  // Uses a separate Postgres if many accounts call. Its background work would otherwise count for the next measured program.
  const ownPostgres = () => (wanted.callers === undefined ? rig.postgres() : rig.keep(startPostgres()));
  const [redis, postgres] = await Promise.all([rig.redis(), ownPostgres()]);
  const [port, adminPort, databaseUrl] = await Promise.all([freePort(), freePort(), postgres.createDatabase()]);
  const [config, data] = await Promise.all([rig.newFolder('config'), rig.newFolder('data')]);
  writeConfiguration(config, upstreamUrl, wanted);
  const adminToken = randomBytes(24).toString('hex');
  const env = {
    PORT: String(port),
    HOST: '127.0.0.1',
    ADMIN_PORT: String(adminPort),
    ADMIN_TOKEN: adminToken,
    DATA_DIR: data,
    REDIS_URL: redis.url,
    DATABASE_URL: databaseUrl,
    TOLLGATE_CONFIG_DIR: config,
    LOG_LEVEL: wanted.logLevel ?? 'warn',
    FAST_LANE: String(wanted.fastLane),
    BENCH_UPSTREAM_KEY: 'bench',
    ...wanted.env,
    ...(wanted.workers !== undefined && { WORKERS: String(wanted.workers) }),
  };
  const url = `http://127.0.0.1:${port}`;
  const adminUrl = `http://127.0.0.1:${adminPort}/admin/v1`;
  const start = async () => {
    const program = await rig.node('tollgate', join(dist, 'server.js'), { nodeArgs, env });
    await waitUntilReady(program, url);
    return program;
  };
  const program = await start();
  await requireWorkers(program, wanted);
  const customers = await makeCustomers(adminUrl, adminToken, wanted);
  const [customer] = customers;
  if (customer === undefined) throw new Error('the bench created no account');
  const storePids = [redis.pid, postgres.pid];
  const running = { url, adminUrl, adminToken, databaseUrl, customer, customers, program, redis, storePids };
  return { ...running, restart: start };
}

/** Checks that all requested workers run. Throws for a version older than workers, which would serve with a single process. */
async function requireWorkers({ pid }: Program, { workers = 1 }: Wanted): Promise<void> {
  if (workers === 1) return;
  const areThere = until('all workers run', () => childPids(pid).length >= workers, 3_000);
  await areThere.catch(() => {
    throw new NotAvailable('this version of the gateway does not know WORKERS');
  });
}

async function startTollgate(
  rig: Rig,
  { upstream, nodeArgs = [], limits }: StartOptions,
  wanted: Wanted,
): Promise<RunningSubject> {
  const { protocol = CHAT } = wanted;
  const { url, customer, customers, program, redis, storePids } = await runTollgate(rig, {
    upstreamUrl: upstream.url,
    nodeArgs,
    limits,
    ...wanted,
  });
  return {
    url: url + protocol.path,
    protocol,
    headers: { authorization: `Bearer ${customer.key}` },
    ...(wanted.callers !== undefined && { keys: customers.map(({ key }) => key) }),
    models: modelsAsked(wanted),
    pids: [program.pid],
    storePids,
    redisUrl: redis.url,
    program,
  };
}

async function waitUntilReady(program: Program, url: string): Promise<void> {
  const hasEnded = () => program.child.exitCode !== null || program.child.signalCode !== null;
  await until('Tollgate is ready', async () => hasEnded() || (await fetch(`${url}/readyz`)).ok, 120_000);
  // Waits for a message that never arrives if the program has exited. The resulting error contains the last lines that the program printed.
  if (hasEnded()) await program.message('nothing');
}

function modelsAsked({ upstreams = 1, isSpread = false }: Wanted): readonly string[] {
  return isSpread ? Array.from({ length: upstreams }, (_, at) => modelAt(at)) : [MODEL];
}

/** Returns the name of the model with this index. The first call to each measured program requests the model with index 0. */
function modelAt(at: number): string {
  return at === 0 ? MODEL : `${MODEL}-at-${at}`;
}

/** Writes the shipped configuration files with the bench's upstreams in them. */
function writeConfiguration(folder: string, upstreamUrl: string, wanted: Wanted): void {
  const {
    checkout = PROJECT_FOLDER,
    upstreams = 1,
    models = 1,
    isSpread = false,
    rollout,
    protocol,
    loggedCalls,
  } = wanted;
  // Configures `responses` only if the calls use it, because another checkout may be older than that protocol.
  const adapter = protocol === RESPONSES ? 'responses' : ['messages', 'chat'];
  const document = parseDocument(readFileSync(join(checkout, 'gateway.config.yml'), 'utf8'));
  const others = Array.from({ length: models - 1 }, (_, index) => `${MODEL}-no-${index + 1}`);
  const names = Array.from({ length: upstreams }, (_, at) => (at === 0 ? 'bench' : `bench-${at}`));
  const endpoints = names.map((name, at) => [
    name,
    { ...endpointOf(upstreamUrl, at, [isSpread ? modelAt(at) : MODEL, ...others]), adapter },
  ]);
  document.set('serviceEndpoints', Object.fromEntries(endpoints));
  if (rollout !== undefined) document.set('rollouts', { bench: rollout });
  writeFileSync(join(folder, 'gateway.config.yml'), document.toString());
  const system = parseDocument(readFileSync(join(checkout, 'system.config.yml'), 'utf8'));
  if (loggedCalls !== undefined) system.setIn(['log', 'calls'], loggedCalls);
  // Raises the connection limit per address, because all clients of a bench have the same address.
  system.setIn(['connections', 'maxPerAddress'], 10_000);
  writeFileSync(join(folder, 'system.config.yml'), system.toString());
}

function endpointOf(url: string, at: number, models: readonly string[]): object {
  // Gives each model its own prices, as resellers do. The context window is large enough for a body of 20 MB.
  const entry = () => ({
    context: 100_000_000,
    maxOutput: 8_192,
    price: { input: (100 + at) / 100, output: (500 + at) / 100 },
  });
  return {
    url,
    credential: { env: 'BENCH_UPSTREAM_KEY' },
    allowPrivate: true,
    models: Object.fromEntries(models.map((name) => [name, entry()])),
  };
}

/** The number of accounts that the bench creates at the same time. */
const AT_ONCE = 8;

/** Creates accounts with money and keys through the operator's API. */
async function makeCustomers(
  adminUrl: string,
  token: string,
  { callers = { accounts: 1, keysOfEach: 1 }, limits = {} }: Wanted,
): Promise<readonly Customer[]> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  // Retries a 503 of the ledger, as the documents advise operators. A busy machine can cause it.
  const post = (path: string, body: object): Promise<Record<string, unknown>> =>
    until(`POST ${path} is done`, async () => {
      const response = await fetch(adminUrl + path, { method: 'POST', headers, body: JSON.stringify(body) });
      if (!response.ok) throw new Error(`POST ${path} responded with ${response.status}: ${await response.text()}`);
      return (await response.json()) as Record<string, unknown>;
    });
  const makeOne = async (): Promise<Customer[]> => {
    const { id } = await post('/accounts', { name: 'bench' });
    await post(`/accounts/${String(id)}/credits`, { amountUsd: CREDIT_USD, idempotencyKey: `bench ${String(id)}` });
    const made: Customer[] = [];
    while (made.length < callers.keysOfEach) {
      const { id: keyId, key } = await post(`/accounts/${String(id)}/keys`, { name: 'bench', ...limits });
      made.push({ accountId: String(id), keyId: String(keyId), key: String(key) });
    }
    return made;
  };
  const all: Customer[] = [];
  for (let left = callers.accounts; left > 0; left -= AT_ONCE) {
    const made = await Promise.all(Array.from({ length: Math.min(AT_ONCE, left) }, makeOne));
    all.push(...made.flat());
  }
  return all;
}
