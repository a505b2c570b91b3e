import { Client } from 'pg';
import { startDocker } from '../../test/support/docker';
import { startGateway, type TestGateway } from '../../test/support/gateway';
import { startPostgres } from '../../test/support/postgres';
import { SMALL, SMALL_ID } from '../../test/support/sandboxes';
import { until } from '../../test/support/until';
import type { Rig } from '../rig';
import { attempt, type Scenario } from '../scenario';
import type { Metrics, Round } from '../table';

/** The number of active sandboxes of one account. */
const MAX_ACTIVE = 20;
const COMMANDS = 10;

/** Measures sandboxes: the time until they run, the time of a command, and the cost of many idle sandboxes. */
export const sandbox: Scenario = {
  name: 'sandbox',
  summary: 'creation and commands at a real Docker engine; queries of idle sandboxes',
  includes: () => false,
  defaults: { rounds: 1, seconds: 60, calls: 30, sandboxes: 1_000 },
  layout: ({ seconds, calls, sandboxes }) => ({
    columns: [
      { key: 'p50Ms', title: 'p50 ms', digits: 0 },
      { key: 'p99Ms', title: 'p99 ms', digits: 0 },
      { key: 'queriesPerMinute', title: 'queries/min', digits: 0 },
      { key: 'perSandbox', title: 'of each', digits: 2 },
    ],
    targets: [],
    notes: [
      `Creation: from the request to the answer of waitFor=RUNNING, ${calls} one after the other. A command is \`:\`, ${COMMANDS} in each.`,
      `Idle: ${sandboxes} sandboxes of the driver \`process\` that nobody uses, for ${seconds} s at the default times, one process with all roles; queries as pg_stat_statements counts them, BEGIN and COMMIT too.`,
    ],
  }),
  run: async (rig, _subjects, { rounds, seconds, calls, sandboxes }) => {
    const done: Round[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const measured = await attempt(rig, () => measure(rig, { seconds, calls, sandboxes }));
      done.push('value' in measured ? measured.value : { sandboxes: { failed: measured.failure } });
    }
    return { rounds: done, unavailable: {}, versions: {} };
  },
};

interface Wanted {
  readonly seconds: number;
  readonly calls: number;
  readonly sandboxes: number;
}

async function measure(rig: Rig, { seconds, calls, sandboxes }: Wanted): Promise<Round> {
  const scope = rig.scope();
  try {
    const [docker, redis, postgres] = await Promise.all([
      scope.keep(startDocker()),
      scope.redis(),
      scope.keep(startPostgres(['shared_preload_libraries=pg_stat_statements'])),
    ]);
    const databaseUrl = await postgres.createDatabase();
    const gateway = await startGateway({
      stores: { redisUrl: redis.url, databaseUrl },
      upstreams: { none: { url: 'http://127.0.0.1:9' } },
      plugins: {
        sandbox: { suppliers: { engine: { driver: 'docker', socket: docker.socket }, local: { driver: 'process' } } },
      },
      configure: (config) => {
        const resources = { cpu: 1, memoryGiB: 0.0625 };
        const atEngine = { supplier: 'engine', resources, supplierSettings: { image: docker.image } };
        config['offerings'] = { small: { ...SMALL, ...atEngine }, idle: SMALL };
      },
    });
    scope.onStop(async () => void (await gateway.stop()));
    const database = new Client({ connectionString: databaseUrl });
    await database.connect();
    scope.onStop(() => database.end());
    await database.query('CREATE EXTENSION pg_stat_statements');
    rig.options.progress('creations and commands at Docker');
    const docked = await atDocker(gateway, calls);
    rig.options.progress(`${seconds} s without a sandbox`);
    const none = await countQueries(database, seconds);
    rig.options.progress(`making ${sandboxes} sandboxes`);
    await makeIdle(gateway, sandboxes);
    rig.options.progress(`${seconds} s with ${sandboxes} idle sandboxes`);
    const idle = await countQueries(database, seconds);
    return {
      ...docked,
      'no sandbox': { queriesPerMinute: none },
      [`${sandboxes} idle`]: { queriesPerMinute: idle, perSandbox: (idle - none) / sandboxes },
    };
  } finally {
    await scope.stop();
  }
}

async function atDocker(gateway: TestGateway, calls: number): Promise<Record<string, Metrics>> {
  const created: number[] = [];
  const commands: number[] = [];
  const { key } = await gateway.newCustomer('1000');
  for (let count = 0; count < calls; count += 1) {
    const begun = performance.now();
    const id = await create(gateway, key, SMALL_ID, `docker ${count}`);
    await running(gateway, key, id);
    created.push(performance.now() - begun);
    for (let command = 0; command < COMMANDS; command += 1) {
      const asked = performance.now();
      const { json } = await gateway.call(`/v1/sandboxes/${id}/commands`, { key, body: { command: ':' } });
      if (json.exitCode !== 0) throw new Error(`the command did not succeed; the response is ${JSON.stringify(json)}`);
      commands.push(performance.now() - asked);
    }
    await gateway.call(`/v1/sandboxes/${id}/terminate`, { key });
  }
  return { 'create → RUNNING': quantiles(created), command: quantiles(commands) };
}

/** Makes idle sandboxes, in as many accounts as the limit of sandboxes per account requires. */
async function makeIdle(gateway: TestGateway, sandboxes: number): Promise<void> {
  const offered = await gateway.newCustomer('1');
  const { json } = await gateway.call('/v1/offerings', { method: 'GET', key: offered.key });
  const { id: offering } = json.find(({ name }: { name: string }) => name === 'idle');
  for (let made = 0; made < sandboxes; made += MAX_ACTIVE) {
    const { key } = await gateway.newCustomer('1000');
    const names = Array.from({ length: Math.min(MAX_ACTIVE, sandboxes - made) }, (_, index) => `idle ${index}`);
    const ids = await Promise.all(names.map((name) => create(gateway, key, offering, name)));
    await Promise.all(ids.map((id) => running(gateway, key, id)));
  }
}

/** Creates a sandbox as the documents advise clients: on a 503, it retries with the same idempotency key. */
async function create(gateway: TestGateway, key: string, offeringId: string, idempotencyKey: string): Promise<string> {
  return until('it is made', async () => {
    const body = { selection: { offeringId }, idempotencyKey };
    const { status, json, text } = await gateway.call('/v1/sandboxes', { key, body });
    if (status !== 202 && status !== 503) throw new Error(`the creation of a sandbox failed with ${status}: ${text}`);
    return status === 202 ? (json.id as string) : undefined;
  });
}

function running(gateway: TestGateway, key: string, id: string): Promise<unknown> {
  return until(
    'it runs',
    async () => {
      const path = `/v1/sandboxes/${id}?waitFor=RUNNING&waitSeconds=30`;
      return (await gateway.call(path, { method: 'GET', key })).json.observedState === 'RUNNING';
    },
    60_000,
  );
}

async function countQueries(database: Client, seconds: number): Promise<number> {
  await database.query('SELECT pg_stat_statements_reset()');
  await new Promise((wake) => setTimeout(wake, seconds * 1_000));
  const { rows } = await database.query<{ calls: string }>('SELECT sum(calls) AS calls FROM pg_stat_statements');
  return (Number(rows[0]?.calls) / seconds) * 60;
}

function quantiles(times: readonly number[]): Metrics {
  const sorted = [...times].sort((one, other) => one - other);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return { p50Ms: at(0.5), p99Ms: at(0.99) };
}
