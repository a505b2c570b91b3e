import { randomBytes } from 'node:crypto';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseDocument } from 'yaml';
import { freePort } from '../../test/support/free-port';
import { until } from '../../test/support/until';
import { CHAT, MODEL, type Protocol, RESPONSES } from '../bodies';
import { PROJECT_FOLDER, type Program, type Rig } from '../rig';
import type { RunningSubject, StartOptions, Subject } from './subject';

/** Everything on: key, routing, reserve and settle in Redis, metering, usage records into Postgres. */
export const tollgate: Subject = {
  name: 'tollgate',
  summary: 'Tollgate, everything on, through its fast lane',
  isNode: true,
  streams: true,
  start: (rig, options) => startTollgate(rig, options, { fastLane: true }),
};

/** To see what a change costs, in one run. */
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

/** To see what a protocol costs beside chat, in one run. */
export const tollgateResponses: Subject = {
  name: 'tollgate-responses',
  summary: 'Tollgate, called and answered in the Responses protocol',
  isNode: true,
  streams: true,
  only: ['json', 'latency', 'stream'],
  start: (rig, options) => startTollgate(rig, options, { fastLane: true, protocol: RESPONSES }),
};

/** As many upstreams and connections to them, and nothing to choose: each call asks for a model that one of them has. */
export const tollgateSpread: Subject = {
  name: 'tollgate-spread',
  summary: 'the same with 50 upstreams of 200 models each, and one candidate for each call',
  isNode: true,
  streams: true,
  only: ['routing'],
  start: (rig, options) => startTollgate(rig, options, { fastLane: true, upstreams: 50, models: 200, isSpread: true }),
};

/** Fifty candidates for every call, and ten thousand prices that are not asked for. */
export const tollgateWide: Subject = {
  name: 'tollgate-wide',
  summary: 'the same with 50 upstreams of 200 models each',
  isNode: true,
  streams: true,
  only: ['routing'],
  start: (rig, options) => startTollgate(rig, options, { fastLane: true, upstreams: 50, models: 200 }),
};

/** Half of the calls in either group, all guards on. */
export const tollgateRollout: Subject = {
  name: 'tollgate-rollout',
  summary: 'the same with a rollout under way: half of the calls at its candidate',
  isNode: true,
  streams: true,
  only: ['rollout'],
  start: (rig, options) => startTollgate(rig, options, { fastLane: true, upstreams: 2, rollout: ROLLOUT }),
};

/** Every call is sent to the candidate too, as long as not too many such calls are under way. */
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
  /** The folder of another checkout, built; this one without. */
  readonly checkout?: string | undefined;
  /** All of them are the same one. */
  readonly upstreams?: number;
  /** Of each upstream. */
  readonly models?: number;
  /** Calls ask for as many models as there are upstreams, each of which only one of them has. */
  readonly isSpread?: boolean;
  readonly rollout?: object;
  /** That calls are made in; chat without. */
  readonly protocol?: Protocol;
}

/** A gateway that answers, with an account that has money and a key. */
export interface RunningTollgate {
  readonly url: string;
  readonly adminUrl: string;
  readonly adminToken: string;
  readonly databaseUrl: string;
  readonly customer: Readonly<Record<'accountId' | 'keyId' | 'key', string>>;
  readonly program: Program;
  readonly storePids: readonly number[];
}

export async function runTollgate(
  rig: Rig,
  { upstreamUrl, nodeArgs = [], ...wanted }: Wanted & { upstreamUrl: string; nodeArgs?: readonly string[] },
): Promise<RunningTollgate> {
  const { checkout } = wanted;
  const dist = checkout === undefined ? await rig.dist() : join(checkout, 'dist');
  const [redis, postgres] = await Promise.all([rig.redis(), rig.postgres()]);
  const [port, adminPort, databaseUrl] = await Promise.all([freePort(), freePort(), postgres.createDatabase()]);
  const [config, data] = await Promise.all([rig.newFolder('config'), rig.newFolder('data')]);
  writeConfiguration(config, upstreamUrl, wanted);
  const adminToken = randomBytes(24).toString('hex');
  const program = await rig.node('tollgate', join(dist, 'server.js'), {
    nodeArgs,
    env: {
      PORT: String(port),
      HOST: '127.0.0.1',
      ADMIN_PORT: String(adminPort),
      ADMIN_TOKEN: adminToken,
      DATA_DIR: data,
      REDIS_URL: redis.url,
      DATABASE_URL: databaseUrl,
      TOLLGATE_CONFIG_DIR: config,
      LOG_LEVEL: 'warn',
      FAST_LANE: String(wanted.fastLane),
      BENCH_UPSTREAM_KEY: 'bench',
    },
  });
  const url = `http://127.0.0.1:${port}`;
  const adminUrl = `http://127.0.0.1:${adminPort}/admin/v1`;
  await waitUntilReady(program, url);
  const customer = await makeCustomer(adminUrl, adminToken);
  return { url, adminUrl, adminToken, databaseUrl, customer, program, storePids: [redis.pid, postgres.pid] };
}

async function startTollgate(
  rig: Rig,
  { upstream, nodeArgs = [] }: StartOptions,
  wanted: Wanted,
): Promise<RunningSubject> {
  const { protocol = CHAT } = wanted;
  const { url, customer, program, storePids } = await runTollgate(rig, {
    upstreamUrl: upstream.url,
    nodeArgs,
    ...wanted,
  });
  return {
    url: url + protocol.path,
    protocol,
    headers: { authorization: `Bearer ${customer.key}` },
    models: modelsAsked(wanted),
    pids: [program.pid],
    storePids,
    program,
  };
}

async function waitUntilReady(program: Program, url: string): Promise<void> {
  const hasEnded = () => program.child.exitCode !== null || program.child.signalCode !== null;
  await until('Tollgate is ready', async () => hasEnded() || (await fetch(`${url}/readyz`)).ok, 30_000);
  // Says with which last words it ended.
  if (hasEnded()) await program.message('nothing');
}

function modelsAsked({ upstreams = 1, isSpread = false }: Wanted): readonly string[] {
  return isSpread ? Array.from({ length: upstreams }, (_, at) => modelAt(at)) : [MODEL];
}

/** The first one is what the first call asks every subject for. */
function modelAt(at: number): string {
  return at === 0 ? MODEL : `${MODEL}-at-${at}`;
}

/** The configuration as it is shipped, with other upstreams in the place of its own. */
function writeConfiguration(folder: string, upstreamUrl: string, wanted: Wanted): void {
  const { checkout = PROJECT_FOLDER, upstreams = 1, models = 1, isSpread = false, rollout, protocol } = wanted;
  // Another checkout may be from before the other protocols.
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
  copyFileSync(join(checkout, 'system.config.yml'), join(folder, 'system.config.yml'));
}

function endpointOf(url: string, at: number, models: readonly string[]): object {
  // Each has prices of its own, as resellers do. A body of 20 MB is to be refused by nobody.
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

/** An account with money and a key of it, as an operator makes them. */
async function makeCustomer(adminUrl: string, token: string): Promise<RunningTollgate['customer']> {
  const post = async (path: string, body: object): Promise<Record<string, unknown>> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const response = await fetch(adminUrl + path, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`POST ${path} answered ${response.status}: ${await response.text()}`);
    return (await response.json()) as Record<string, unknown>;
  };
  const { id } = await post('/accounts', { name: 'bench' });
  await post(`/accounts/${String(id)}/credits`, { amountUsd: '1000000', idempotencyKey: 'bench' });
  const made = await post(`/accounts/${String(id)}/keys`, { name: 'bench' });
  return { accountId: String(id), keyId: String(made['id']), key: String(made['key']) };
}
