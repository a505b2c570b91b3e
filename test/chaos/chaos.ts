/**
 * `npm run chaos`: the real server in two processes, a real Redis and Postgres, customers that call, and faults one after the
 * other. At the end everything customers were told must be so, to the unit. Exit status 1 when it is not.
 */
import { Command, InvalidArgumentError, Option } from 'commander';
import { openDatabase } from '../../core/storage/database';
import { quiet } from '../support/databases';
import { PRICE, type TestGateway } from '../support/gateway';
import { seeded } from '../support/random';
import { until } from '../support/until';
import { type Accounts, accountFor } from './account-for';
import { FAULTS, pause, type World } from './faults';
import { type Acknowledged, type Customer, startLoad } from './load';
import { makeNode, type Node } from './nodes';
import { postgresServer, redisServer } from './servers';
import { startUpstream } from './upstream';

interface Options {
  readonly minutes: number;
  readonly clients: number;
  readonly seed: number;
  readonly fsync: 'everysec' | 'always';
  readonly without: readonly string[];
}

/** From the end of one fault to the next: long enough for calls to be served in between. */
const QUIET_MS = 1_500;
const NODES = 2;
const CUSTOMERS = 12;

function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new InvalidArgumentError('not a number above 0.');
  return value;
}

function readOptions(): Options {
  const names = Object.keys(FAULTS);
  return new Command('npm run chaos --')
    .description('Kills, stops, empties and restarts everything under load, and counts what became of the money.')
    .option('--minutes <n>', 'how long faults go on', positive, 10)
    .option('--clients <n>', 'customers at once', positive, 16)
    .option('--seed <n>', 'what the faults are chosen by', positive, Date.now() % 1_000_000)
    .addOption(new Option('--fsync <when>', "Redis' appendfsync").choices(['everysec', 'always']).default('everysec'))
    .addOption(new Option('--without <faults...>', 'leave these out').choices(names).default([]))
    .parse()
    .opts<Options>();
}

const note = (line: string) => process.stderr.write(`${new Date().toTimeString().slice(0, 8)} ${line}\n`);

async function main(): Promise<void> {
  const options = readOptions();
  const random = seeded(options.seed);
  note(`seed ${options.seed}, ${options.minutes} minutes, appendfsync ${options.fsync}`);
  const redis = await redisServer(options.fsync);
  const postgres = await postgresServer();
  const upstream = await startUpstream(random);
  const stores = { redisUrl: redis.url, databaseUrl: postgres.url };
  const nodes: Node[] = [];
  const end = async () => {
    await Promise.allSettled(nodes.map((node) => node.kill()));
    await Promise.allSettled([redis.remove(), postgres.remove(), upstream.stop()]);
  };
  endOnSignal(end);
  try {
    await Promise.all([redis.start(), postgres.start()]);
    const upstreams = { acme: { url: upstream.url, models: { 'acme-large': { price: PRICE } } } };
    for (let each = 0; each < NODES; each += 1) nodes.push(await makeNode({ stores, upstreams }, note));
    for (const node of nodes) await node.start();
    process.exitCode = await prove({ nodes, redis, postgres, random }, options);
  } finally {
    await Promise.allSettled(nodes.map((node) => node.remove()));
    await end();
  }
}

/** Whoever stops the run leaves nothing running. */
function endOnSignal(end: () => Promise<unknown>): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void end().then(() => process.exit(1)));
}

async function prove(world: World, options: Options): Promise<number> {
  const customers = await newCustomers(world.nodes);
  const load = startLoad({ ...world, customers, clients: options.clients });
  const counts = await harm(world, options);
  await pause(3_000);
  await load.stop();
  note('no more faults, no more calls: what is on its way arrives');
  const gateway = await until('a node is there', () => world.nodes.find((node) => node.current())?.current(), 60_000);
  const database = await openDatabase({ databaseUrl: world.postgres.url, dataFolder: '', log: quiet });
  try {
    let accounts = await accountFor(database, load.acknowledged);
    for (const deadline = Date.now() + 90_000; accounts.lost.length > 0 && Date.now() < deadline; ) {
      await pause(2_000);
      accounts = await accountFor(database, load.acknowledged);
    }
    const violations = await until('the ledger is verified', () => verifyAll(gateway), 180_000);
    accounts = await accountFor(database, load.acknowledged);
    const isSound = report(options, counts, load.acknowledged, accounts, violations);
    return isSound ? 0 : 1;
  } finally {
    await database.destroy();
  }
}

async function newCustomers(nodes: readonly Node[]): Promise<readonly Customer[]> {
  const gateway = nodes[0]?.current();
  if (gateway === undefined) throw new Error('the first node is not there');
  const customers: Customer[] = [];
  // One in four has little: calls are refused, and come back after a top-up.
  for (let each = 0; each < CUSTOMERS; each += 1) {
    customers.push(await gateway.newCustomer(each % 4 === 0 ? '0.05' : '50'));
  }
  return customers;
}

/** One fault after the other; answers how often each was done. */
async function harm(world: World, { minutes, without }: Options): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  const canSetClock = world.redis.setClock !== undefined;
  if (!canSetClock) note('there is no C compiler here: the clock of Redis stays as it is');
  const names = Object.keys(FAULTS).filter(
    (name) => !without.includes(name) && (canSetClock || !name.includes('clock')),
  );
  for (const end = Date.now() + minutes * 60_000; Date.now() < end; ) {
    const name = world.random.pick(names);
    note(name);
    await FAULTS[name]?.(world);
    counts.set(name, (counts.get(name) ?? 0) + 1);
    await pause(QUIET_MS + world.random.below(QUIET_MS));
  }
  return counts;
}

/** All pages of the verification that operators have; undefined while the ledger cannot be asked. */
async function verifyAll(gateway: TestGateway): Promise<readonly object[] | undefined> {
  const items: object[] = [];
  let cursor: string | null = null;
  do {
    const query: string = cursor === null ? '' : `?cursor=${cursor}`;
    const { status, json } = await gateway.admin('GET', `/admin/v1/ledger/verify${query}`);
    if (status !== 200) return undefined;
    items.push(...json.items);
    cursor = json.nextCursor;
  } while (cursor !== null);
  return items;
}

function report(
  { seed, minutes, fsync }: Options,
  counts: ReadonlyMap<string, number>,
  { calls, credits, statuses }: Acknowledged,
  { entries, records, charges, lost, afterLease, inPart, twice, gaps, differences }: Accounts,
  violations: readonly object[],
): boolean {
  const lines: readonly (readonly [string, string | number])[] = [
    ['seed, minutes, appendfsync', `${seed}, ${minutes}, ${fsync}`],
    ...[...counts].sort().map((line) => line),
    ['faults', [...counts.values()].reduce((sum, each) => sum + each, 0)],
    ...[...statuses]
      .sort(([one], [other]) => one - other)
      .map(([status, count]) => [`answers ${status || 'lost'}`, count] as const),
    ['calls acknowledged with a cost', calls.size],
    ['credits acknowledged', credits.size],
    ['entries', entries],
    ['charges', charges],
    ['usage records', records],
    ['lost', lost.length],
    ['not charged, lease over', afterLease],
    ['charged in part, balance spent', inPart],
    ['twice', twice],
    ['gaps', gaps],
    ['sums that differ', differences.length],
    ['invariants broken', violations.length],
  ];
  const width = Math.max(...lines.map(([name]) => name.length));
  for (const [name, value] of lines) process.stdout.write(`${name.padEnd(width)}  ${value}\n`);
  const wrong = [...lost, ...differences, ...violations.map((each) => JSON.stringify(each))];
  for (const line of wrong.slice(0, 50)) process.stdout.write(`WRONG ${line}\n`);
  return wrong.length + twice + gaps === 0;
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exitCode = 1;
});
