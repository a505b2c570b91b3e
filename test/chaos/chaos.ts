/**
 * `npm run chaos`: runs three nodes of the real server with two workers each, a real Redis and Postgres, and customers, some of which call so much
 * that nodes hold allowances for them. It injects one fault after the other. At the end, everything that customers were told must be true, to the
 * unit. Exit status 1 when it is not.
 */
import { Command, InvalidArgumentError, Option } from 'commander';
import { openDatabase } from '../../core/storage/database';
import { quiet } from '../support/databases';
import { MODEL, PRICE, type TestGateway } from '../support/gateway';
import { seeded } from '../support/random';
import { until } from '../support/until';
import type { Accounts } from './account-for';
import { type Alerts, accountForAlerts, alertAccount, type Receiver, startReceiver } from './alerts';
import { accountAtRest, VERIFIED_WITHIN_MS, verifyAll } from './at-rest';
import { FAULTS, type World as Harmed, pause } from './faults';
import { type Acknowledged, type Customer, startLoad } from './load';
import { makeNode, type Node } from './nodes';
import { postgresServer, redisServer } from './servers';
import { QUICK, startUpstream } from './upstream';

interface Options {
  readonly minutes: number;
  readonly clients: number;
  readonly seed: number;
  readonly nodes: number;
  readonly workers: number;
  readonly allowances: boolean;
  readonly fsync: 'everysec' | 'always';
  readonly without: readonly string[];
}

type World = Harmed & { readonly receiver: Receiver };

/** The pause between two faults, long enough for a number of calls, except before faults that follow closely. */
const QUIET_MS = 1_500;
const QUIET_CALLS = 1_000;
const MAX_QUIET_MS = 20_000;
/** One fault in this many follows closely on the previous one. */
const CLOSELY = 4;
/** The number of faults until a pause, in which the ledger must verify without problems while calls continue. */
const FAULTS_UNTIL_VERIFIED = 8;
const COLD_CUSTOMERS = 12;
const HOT_CUSTOMERS = 4;
/** Many, so that events of budgets are not rare. */
const THRESHOLDS = [1, 2, 5, 10, 20, 35, 50, 65, 80, 100];
/** The lowest share of answered calls that allowances must have admitted. */
const MIN_FROM_ALLOWANCES = 0.5;

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
    .option('--clients <n>', 'customers at once', positive, 24)
    .option('--nodes <n>', 'how many nodes', positive, 3)
    .option('--workers <n>', 'processes of each node', positive, 2)
    .option('--no-allowances', 'nodes take no money in advance')
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
  const { seed, minutes, fsync, workers, allowances } = options;
  note(`seed ${seed}, ${minutes} minutes, appendfsync ${fsync}, allowances ${allowances ? 'on' : 'off'}`);
  const redis = await redisServer(options.fsync);
  const postgres = await postgresServer();
  const upstream = await startUpstream(random);
  const receiver = await startReceiver(random);
  const stores = { redisUrl: redis.url, databaseUrl: postgres.url };
  const nodes: Node[] = [];
  const end = async () => {
    await Promise.allSettled(nodes.map((node) => node.kill()));
    await Promise.allSettled([redis.remove(), postgres.remove(), upstream.stop(), receiver.kill()]);
  };
  endOnSignal(end);
  try {
    await Promise.all([redis.start(), postgres.start()]);
    const models = { [MODEL]: { price: PRICE }, [QUICK]: { price: PRICE } };
    const upstreams = { acme: { url: upstream.url, models } };
    const system = { ledger: { allowances }, webhooks: { allowPrivate: true } };
    for (let each = 0; each < options.nodes; each += 1)
      nodes.push(await makeNode({ stores, upstreams, system }, note, workers));
    const [first, ...others] = nodes;
    await first?.start();
    await Promise.all(others.map((node) => node.start()));
    process.exitCode = await prove({ nodes, redis, postgres, receiver, random }, options);
  } finally {
    await Promise.allSettled(nodes.map((node) => node.remove()));
    await end();
  }
}

/** Ends everything when a signal stops the run. */
function endOnSignal(end: () => Promise<unknown>): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void end().then(() => process.exit(1)));
}

async function prove(world: World, options: Options): Promise<number> {
  const customers = await newCustomers(world, options);
  const load = startLoad({ ...world, customers, clients: options.clients });
  const { counts, verified } = await harm(world, options, () => load.acknowledged.calls.size);
  await pause(3_000);
  await load.stop();
  note('no more faults, no more calls: what is on its way arrives');
  const database = await openDatabase({ databaseUrl: world.postgres.url, dataFolder: '', log: quiet });
  try {
    const { accounts, violations } = await accountAtRest(database, load.acknowledged, world.nodes);
    const alerts = await accountForAlerts(database, world.receiver);
    const isSound = report(options, counts, load.acknowledged, accounts, alerts, violations, verified);
    return isSound ? 0 : 1;
  } finally {
    await database.destroy();
  }
}

async function newCustomers({ nodes, receiver }: World, { minutes }: Options): Promise<readonly Customer[]> {
  const gateway = nodes[0]?.current();
  if (gateway === undefined) throw new Error('the first node is not there');
  const customers: Customer[] = [];
  // One customer in four has little money: its calls are refused, and accepted after a top-up.
  for (let each = 0; each < COLD_CUSTOMERS; each += 1)
    customers.push({ ...(await gateway.newCustomer(each % 4 === 0 ? '0.05' : '50')), isHot: false });
  // One customer has little money, so that its allowance is recalled and used up. The key of another reaches its limit halfway.
  const limit = { balanceLimit: (2 * minutes).toFixed(2) };
  for (let each = 0; each < HOT_CUSTOMERS; each += 1)
    customers.push({
      ...(await gateway.newCustomer(each === 0 ? '2' : '5000', each === 1 ? limit : {})),
      isHot: true,
    });
  for (const customer of customers) {
    await setBudgets(gateway, customer, minutes);
    await alertAccount(gateway, customer.accountId, receiver);
  }
  return customers;
}

/** Gives a customer's key a team and a member, and these and the tag `customer` limits. Some limits are reached. */
async function setBudgets(gateway: TestGateway, { accountId, keyId, isHot }: Customer, minutes: number): Promise<void> {
  const admin = async (method: string, path: string, body: object) => {
    const answer = await gateway.admin(method, `/admin/v1${path}`, body);
    // A busy machine may be late to tell the ledger. What was made stays, and the sweeper tells it.
    if (answer.status === 503) return String(Object.values(answer.json.error.details ?? {})[0]);
    if (answer.status >= 300) throw new Error(`${method} ${path} answered ${answer.status}`);
    return String(answer.json.id);
  };
  const account = `/accounts/${accountId}`;
  const teamId = await admin('POST', `${account}/teams`, { name: 'team' });
  const person = { email: `${accountId}@example.com`, password: 'a long password' };
  const memberId = await admin('POST', `${account}/users`, person);
  await admin('PATCH', `/keys/${keyId}`, { teamId, memberId });
  const usd = (each: number) => (each * minutes).toFixed(2);
  for (const budget of [
    { scope: 'team', scopeId: teamId, window: 'total', limitUsd: usd(isHot ? 200 : 0.5) },
    { scope: 'member', scopeId: memberId, window: 'month', limitUsd: usd(500) },
    { scope: 'tag', tag: 'customer', window: 'day', limitUsd: usd(isHot ? 100 : 0.2) },
    { scope: 'tag', tag: 'customer', value: '0', window: 'total', limitUsd: usd(0.02) },
  ])
    await admin('POST', `${account}/budgets`, { ...budget, thresholds: THRESHOLDS });
}

/** Injects one fault after the other. Returns how often each ran, and how often the ledger was verified between them. */
async function harm(world: World, { minutes, without }: Options, served: () => number) {
  const counts = new Map<string, number>();
  const canSetClock = world.redis.setClock !== undefined;
  if (!canSetClock) note('there is no C compiler here: the clock of Redis stays as it is');
  const names = Object.keys(FAULTS).filter(
    (name) => !without.includes(name) && (canSetClock || !name.includes('clock')),
  );
  let [faults, verified] = [0, 0];
  for (const end = Date.now() + minutes * 60_000; Date.now() < end; ) {
    const name = world.random.pick(names);
    note(name);
    await FAULTS[name]?.(world);
    counts.set(name, (counts.get(name) ?? 0) + 1);
    const enough = served() + QUIET_CALLS;
    const latest = Date.now() + (world.random.below(CLOSELY) === 0 ? 0 : MAX_QUIET_MS);
    do await pause(QUIET_MS + world.random.below(QUIET_MS));
    while (served() < enough && Date.now() < latest);
    faults += 1;
    if (faults % FAULTS_UNTIL_VERIFIED > 0) continue;
    await until('nothing is wrong with the ledger under load', () => verifySound(world.nodes), VERIFIED_WITHIN_MS);
    verified += 1;
  }
  return { counts, verified };
}

/** @throws with the problems that the verification found */
async function verifySound(nodes: readonly Node[]): Promise<boolean> {
  const violations = await verifyAll(nodes);
  if (violations !== undefined && violations.length > 0) throw new Error(JSON.stringify(violations));
  return violations !== undefined;
}

function report(
  { seed, minutes, fsync, nodes, workers, allowances }: Options,
  counts: ReadonlyMap<string, number>,
  { calls, credits, answers }: Acknowledged,
  {
    entries,
    reports,
    reportedCalls,
    records,
    charges,
    lost,
    afterLease,
    inPart,
    twice,
    gaps,
    exceeded,
    differences,
  }: Accounts,
  alerts: Alerts,
  violations: readonly object[],
  verified: number,
): boolean {
  const share = reportedCalls / (answers.get('200') ?? 1);
  const lines: readonly (readonly [string, string | number])[] = [
    ['seed, minutes, appendfsync', `${seed}, ${minutes}, ${fsync}`],
    ['nodes, workers, allowances', `${nodes}, ${workers}, ${allowances ? 'on' : 'off'}`],
    ...[...counts].sort().map((line) => line),
    ['faults', [...counts.values()].reduce((sum, each) => sum + each, 0)],
    ...[...answers].sort().map(([answer, count]) => [`answers ${answer}`, count] as const),
    ['calls acknowledged with a cost', calls.size],
    ['credits acknowledged', credits.size],
    ['calls from allowances', `${reportedCalls} (${Math.round(100 * share)} %)`],
    ['entries', entries],
    ['reports', reports],
    ['charges', charges],
    ['usage records', records],
    ['lost', lost.length],
    ['not charged, lease over', afterLease],
    ['charged in part, balance spent', inPart],
    ['twice', twice],
    ['gaps', gaps],
    ['balances below 0, scopes above their limit', exceeded],
    ['sums that differ', differences.length],
    ['events of money', alerts.events],
    ['events that are missing, wrong or late', alerts.wrong.length],
    ['verified under load', verified],
    ['invariants broken', violations.length],
  ];
  const width = Math.max(...lines.map(([name]) => name.length));
  for (const [name, value] of lines) process.stdout.write(`${name.padEnd(width)}  ${value}\n`);
  const wrong = [...lost, ...differences, ...alerts.wrong, ...violations.map((each) => JSON.stringify(each))];
  if (allowances && share < MIN_FROM_ALLOWANCES) wrong.push('most calls asked Redis, so this has shown little');
  for (const line of wrong.slice(0, 50)) process.stdout.write(`WRONG ${line}\n`);
  return wrong.length + twice + gaps + exceeded === 0;
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exitCode = 1;
});
