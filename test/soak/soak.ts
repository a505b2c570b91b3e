/**
 * `npm run soak`: an hour of load, kills, reloads and attacks, while it measures one process that is never killed. Exit status 1 when that process
 * grows or ends, or when money differs by a unit.
 */
import { writeFile } from 'node:fs/promises';
import { Command } from 'commander';
import { openDatabase } from '../../core/storage/database';
import { FRONT_ATTACKS, type Front } from '../attack/attacks';
import { hostileConnections, WILD_MODEL } from '../attack/scene';
import { startWildUpstream } from '../attack/wild-upstream';
import { accountAtRest } from '../chaos/at-rest';
import { pause } from '../chaos/faults';
import { type Customer, startLoad } from '../chaos/load';
import { makeNode } from '../chaos/nodes';
import { postgresServer, redisServer } from '../chaos/servers';
import { QUICK, startUpstream } from '../chaos/upstream';
import { quiet } from '../support/databases';
import { MODEL, PRICE, type TestGateway } from '../support/gateway';
import { positive, runProgram } from '../support/program';
import { type Random, seeded } from '../support/random';
import { TestSocket } from '../support/test-socket';
import { disturbancesOf } from './disturbances';
import { judge, MEASURES, type Sample, tableOfSoak } from './judge';
import { startWatch } from './watch';

interface Options {
  readonly minutes: number;
  readonly clients: number;
  readonly pause: number;
  readonly seed: number;
  readonly json?: string;
}

const SAMPLE_MS = 15_000;
/** The pause after attacks and faults, so that no sample has their connections. */
const CALM_MS = 2_000;
const HOT_CUSTOMERS = 2;
const COLD_CUSTOMERS = 6;
const CALLS_OF_A_SOCKET = 20;
/** The id in the paths of sandboxes. The test makes none, so that these paths answer with errors. */
const NO_SANDBOX = 'none';

const command = new Command('npm run soak --')
  .description(
    'Measures for an hour whether a process under load, kills, reloads and attacks grows, and whether money stays exact.',
  )
  .option('--minutes <n>', 'how long', positive, 60)
  .option('--clients <n>', 'how many call at once', positive, 12)
  .option('--pause <ms>', 'how long a client of a busy customer waits between two calls', positive, 100)
  .option('--seed <n>', 'what chance is made from', positive, Date.now() % 1_000_000)
  .option('--json <file>', 'write options, samples, verdicts and findings to this file');

const note = (line: string) => process.stderr.write(`${new Date().toTimeString().slice(0, 8)} ${line}\n`);

async function main(): Promise<void> {
  const options = command.parse().opts<Options>();
  const random = seeded(options.seed);
  const [redis, postgres] = [await redisServer('everysec'), await postgresServer()];
  const [upstream, wild] = [await startUpstream(random), await startWildUpstream(random)];
  await Promise.all([redis.start(), postgres.start()]);
  const node = {
    stores: { redisUrl: redis.url, databaseUrl: postgres.url },
    upstreams: {
      acme: {
        url: upstream.url,
        adapter: 'messages',
        models: { [MODEL]: { price: PRICE }, [QUICK]: { price: PRICE } },
      },
      wild: { url: wild.url, timeouts: { connect: '1s', headers: '2s', idle: '2s' }, models: { [WILD_MODEL]: {} } },
    },
    // Keeps no log of calls, because the test gateway keeps its log in memory.
    system: { log: { calls: 0 } },
  };
  const [watched, other] = [await makeNode(node, note), await makeNode(node, note, 2)];
  const end = async () => {
    await Promise.allSettled([watched.remove(), other.remove()]);
    wild.stop();
    await Promise.allSettled([redis.remove(), postgres.remove(), upstream.stop()]);
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void end().finally(() => process.exit(1)));
  try {
    await watched.start();
    await other.start();
    await soak({ watched, other, redis, postgres, random, nodes: [watched, other] }, options);
  } finally {
    await end();
  }
}

type World = Parameters<typeof disturbancesOf>[0] & Parameters<typeof disturbancesOf>[1];

async function soak(world: World, options: Options): Promise<void> {
  const { watched, random } = world;
  const gateway = watched.current();
  if (gateway === undefined) throw new Error('the watched process is not there');
  const load = startLoad({ ...world, ...options, customers: await newCustomers(gateway), hotPauseMs: options.pause });
  const sockets = startSockets(gateway, (await gateway.newCustomer('1000')).key);
  const hostile = hostileConnections(gateway.url);
  const front: Front = {
    connect: hostile.connect,
    rich: (await gateway.newCustomer('100000')).key,
    penniless: (await gateway.newCustomer('0')).key,
    sandboxId: NO_SANDBOX,
  };
  const database = await openDatabase({ databaseUrl: world.postgres.url, dataFolder: '', log: quiet });
  const watch = startWatch(gateway, database, load.acknowledged);
  const samples: Sample[] = [];
  const counts = new Map<string, number>();
  const findings: string[] = [];
  try {
    const next = disturb(world, front, random, counts, findings);
    for (const endMs = Date.now() + options.minutes * 60_000; Date.now() < endMs && watched.current() === gateway; ) {
      const dueMs = Date.now() + SAMPLE_MS;
      await next();
      await pause(Math.max(CALM_MS, dueMs - Date.now()));
      if (watched.current() !== gateway) break;
      samples.push(await watch.sample());
      note(JSON.stringify(samples.at(-1)));
    }
    await Promise.all([load.stop(), sockets.stop(), watch.stop()]);
    hostile.close();
    if (watched.current() !== gateway)
      findings.push(`the watched process has ended: ${gateway.output().slice(-2_000)}`);
    const { accounts, violations } = await accountAtRest(database, load.acknowledged, world.nodes);
    await watch.driftUsd(); // The next measurement then includes the last calls.
    const restUsd = await watch.driftUsd();
    const { lost, differences, twice, gaps, exceeded } = accounts;
    findings.push(...lost, ...differences, ...violations.map((each) => JSON.stringify(each)));
    for (const [name, count] of Object.entries({ twice, gaps, exceeded }))
      if (count > 0) findings.push(`${name}: ${count}`);
    if (restUsd !== 0) findings.push(`money differs by USD ${restUsd.toFixed(8)} at rest`);
    const told = load.acknowledged;
    const share = Math.round((100 * accounts.reportedCalls) / told.calls.size);
    const served = `${told.calls.size} calls answered with a cost (${share} % from money in advance), ${sockets.served()} over WebSockets`;
    await report(options, {
      samples,
      restUsd,
      served,
      answers: Object.fromEntries([...told.answers].sort()),
      disturbances: Object.fromEntries([...counts].sort()),
      findings,
    });
  } finally {
    await database.destroy();
  }
}

interface Outcome {
  readonly samples: readonly Sample[];
  readonly restUsd: number;
  readonly served: string;
  readonly answers: Readonly<Record<string, number>>;
  readonly disturbances: Readonly<Record<string, number>>;
  readonly findings: readonly string[];
}

async function report({ minutes, seed, json }: Options, outcome: Outcome): Promise<void> {
  const { samples, restUsd, served, answers, disturbances } = outcome;
  const verdicts = judge(samples);
  const growing = verdicts.flatMap(({ measure, grows }) => (grows ? [`${MEASURES[measure].title} grows`] : []));
  const findings = [...growing, ...outcome.findings];
  const lines = [
    tableOfSoak(samples, verdicts, restUsd),
    `${minutes} minutes, seed ${seed}, ${samples.length} samples`,
    served,
    `answers: ${JSON.stringify(answers)}`,
    ...Object.entries(disturbances).map(([name, count]) => `${String(count).padStart(5)}  ${name}`),
    ...findings.slice(0, 50).map((finding) => `FOUND ${finding}`),
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
  if (json !== undefined)
    await writeFile(json, `${JSON.stringify({ minutes, seed, ...outcome, verdicts, findings }, null, 2)}\n`);
  process.exitCode = findings.length === 0 ? 0 : 1;
}

/** Returns a function that runs the next attack together with the next kill or reload. */
function disturb(world: World, front: Front, random: Random, counts: Map<string, number>, findings: string[]) {
  const attacks = FRONT_ATTACKS.map(({ name, run }) => [`attack: ${name}`, () => run(front, random)] as const);
  const others = [...disturbancesOf(world, world)];
  let turn = 0;
  return async () => {
    const chosen = [attacks[turn % attacks.length], others[turn % others.length]].flatMap((each) =>
      each ? [each] : [],
    );
    turn += 1;
    await Promise.all(
      chosen.map(async ([name, run]) => {
        await run().catch((error: unknown) => findings.push(`${name}: ${String(error)}`));
        counts.set(name, (counts.get(name) ?? 0) + 1);
      }),
    );
  };
}

async function newCustomers(gateway: TestGateway): Promise<readonly Customer[]> {
  const customers: Customer[] = [];
  for (let each = 0; each < HOT_CUSTOMERS + COLD_CUSTOMERS; each += 1)
    customers.push({ ...(await gateway.newCustomer('10000')), isHot: each < HOT_CUSTOMERS });
  return customers;
}

/** Runs one client that calls over WebSockets, and reconnects now and then. */
function startSockets(gateway: TestGateway, key: string) {
  let [isStopped, served] = [false, 0];
  const visit = async () => {
    const socket = await TestSocket.open(gateway, key);
    try {
      for (let left = CALLS_OF_A_SOCKET; left > 0 && !isStopped; left -= 1) {
        const events = await socket.call();
        if (events.at(-1).type === 'response.completed') served += 1;
        await pause(200);
      }
    } finally {
      socket.close();
    }
  };
  const go = async () => {
    while (!isStopped) await visit().catch(() => pause(1_000));
  };
  const working = go();
  return {
    served: () => served,
    stop: async () => {
      isStopped = true;
      await working;
    },
  };
}

void runProgram(main);
