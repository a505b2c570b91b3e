import { randomBytes } from 'node:crypto';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseDocument } from 'yaml';
import { freePort } from '../../test/support/free-port';
import { until } from '../../test/support/until';
import { CHAT_PATH, MODEL } from '../bodies';
import { PROJECT_FOLDER, type Program, type Rig } from '../rig';
import type { RunningSubject, StartOptions, Subject } from './subject';

/** Everything on: key, routing, reserve and settle in Redis, metering, usage records into Postgres. */
export const tollgate: Subject = {
  name: 'tollgate',
  summary: 'Tollgate, everything on, through its fast lane',
  isNode: true,
  streams: true,
  start: (rig, options) => startTollgate(rig, options, { fastLane: true, upstreams: 1, models: 1 }),
};

export const tollgateExpress: Subject = {
  name: 'tollgate-express',
  summary: "the same, through Express Gateway's own way",
  isNode: true,
  streams: true,
  start: (rig, options) => startTollgate(rig, options, { fastLane: false, upstreams: 1, models: 1 }),
};

/** Fifty candidates for every call, and ten thousand prices that are not asked for. */
export const tollgateWide: Subject = {
  name: 'tollgate-wide',
  summary: 'the same with 50 upstreams of 200 models each',
  isNode: true,
  streams: true,
  only: 'routing',
  start: (rig, options) => startTollgate(rig, options, { fastLane: true, upstreams: 50, models: 200 }),
};

interface Wanted {
  readonly fastLane: boolean;
  readonly upstreams: number;
  /** Of each upstream. */
  readonly models: number;
}

async function startTollgate(
  rig: Rig,
  { upstream, nodeArgs = [] }: StartOptions,
  wanted: Wanted,
): Promise<RunningSubject> {
  const dist = await rig.dist();
  const [redis, postgres] = await Promise.all([rig.redis(), rig.postgres()]);
  const [port, adminPort, databaseUrl] = await Promise.all([freePort(), freePort(), postgres.createDatabase()]);
  const [config, data] = await Promise.all([rig.newFolder('config'), rig.newFolder('data')]);
  writeConfiguration(config, upstream.url, wanted);
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
  await waitUntilReady(program, url);
  const key = await makeKey(`http://127.0.0.1:${adminPort}/admin/v1`, adminToken);
  return {
    url: url + CHAT_PATH,
    headers: { authorization: `Bearer ${key}` },
    pids: [program.pid],
    storePids: [redis.pid, postgres.pid],
    program,
  };
}

async function waitUntilReady(program: Program, url: string): Promise<void> {
  const hasEnded = () => program.child.exitCode !== null || program.child.signalCode !== null;
  await until('Tollgate is ready', async () => hasEnded() || (await fetch(`${url}/readyz`)).ok, 30_000);
  // Says with which last words it ended.
  if (hasEnded()) await program.message('nothing');
}

/** The configuration as it is shipped, with other upstreams in the place of its own; all of them are the same one. */
function writeConfiguration(folder: string, upstreamUrl: string, { upstreams, models }: Wanted): void {
  const document = parseDocument(readFileSync(join(PROJECT_FOLDER, 'gateway.config.yml'), 'utf8'));
  const names = Array.from({ length: upstreams }, (_, index) => (index === 0 ? 'bench' : `bench-${index}`));
  const endpoints = names.map((name, at) => [name, endpointOf(upstreamUrl, at, models)]);
  document.set('serviceEndpoints', Object.fromEntries(endpoints));
  writeFileSync(join(folder, 'gateway.config.yml'), document.toString());
  copyFileSync(join(PROJECT_FOLDER, 'system.config.yml'), join(folder, 'system.config.yml'));
}

function endpointOf(url: string, at: number, models: number): object {
  // Each has prices of its own, as resellers do. A body of 20 MB is to be refused by nobody.
  const price = { input: 1 + at / 100, output: 5 + at / 100 };
  const names = Array.from({ length: models }, (_, index) => (index === 0 ? MODEL : `${MODEL}-no-${index}`));
  return {
    url,
    adapter: ['messages', 'chat'],
    credential: { env: 'BENCH_UPSTREAM_KEY' },
    allowPrivate: true,
    models: Object.fromEntries(names.map((name) => [name, { context: 100_000_000, maxOutput: 8_192, price }])),
  };
}

/** An account with money and a key of it, as an operator makes them. */
async function makeKey(adminUrl: string, token: string): Promise<string> {
  const post = async (path: string, body: object): Promise<Record<string, unknown>> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const response = await fetch(adminUrl + path, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`POST ${path} answered ${response.status}: ${await response.text()}`);
    return (await response.json()) as Record<string, unknown>;
  };
  const { id } = await post('/accounts', { name: 'bench' });
  await post(`/accounts/${String(id)}/credits`, { amountUsd: '1000000', idempotencyKey: 'bench' });
  const { key } = await post(`/accounts/${String(id)}/keys`, { name: 'bench' });
  return String(key);
}
