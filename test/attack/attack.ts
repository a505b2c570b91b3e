/**
 * `npm run attack`: runs all attacks at once on a gateway for 15 minutes, while honest customers call. The gateway must serve them, survive, not
 * grow, and charge exactly. STORES chooses the stores. Exit status 1 when it does not.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Command } from 'commander';
import { ledgerFault, ownLag, type Vitals, vitalsOf } from '../fuzz/rig';
import { isRunning } from '../support/gateway';
import { positive, runProgram } from '../support/program';
import { type Random, seeded } from '../support/random';
import { databaseOf } from '../support/stores';
import { until } from '../support/until';
import { ATTACKS, type Attack } from './attacks';
import { type HonestCall, startHonestCustomers } from './customers';
import { openScene, type Scene } from './scene';

const LOOK_EVERY_MS = 500;
const MAX_LAG_MS = 100;
/** How many more descriptors the process may have in its last third than in its second. */
const MORE_DESCRIPTORS = 100;
const MORE_MIB = 100;

interface Options {
  readonly minutes: number;
  readonly seed: number;
  readonly rows: number;
  /** Part of the names of the attacks to run. Default: all. */
  readonly only?: string;
  readonly json: boolean;
}

/** The measurements of one part of the run. */
interface Row {
  readonly minute: number;
  readonly calls: number;
  readonly notServed: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly rssMiB: number;
  readonly descriptors: number;
  /** How many measurements found the event loop blocked for too long, and the number of measurements. */
  readonly lags: number;
  readonly looks: number;
  readonly worstLagMs: number;
}

const command = new Command('npm run attack --')
  .description(
    'Sends all attacks at once to a running gateway, while honest customers call. STORES is real or embedded.',
  )
  .option('--minutes <n>', 'how long', positive, 15)
  .option('--seed <n>', 'what chance is made from', positive, Math.floor(Date.now() / 1_000))
  .option('--rows <n>', 'rows of the table', positive, 15)
  .option('--only <text>', 'only attacks whose name contains this')
  .option('--json', 'print JSON instead of a table', false)
  .addHelpText('after', `\nAttacks:\n${ATTACKS.map(({ name }) => `  ${name}`).join('\n')}`);

async function main(): Promise<void> {
  const options = command.parse().opts<Options>();
  const chosen = ATTACKS.filter(({ name }) => name.includes(options.only ?? ''));
  if (chosen.length === 0) command.error(`no attack is named "${options.only}"; see --help`);
  const random = seeded(options.seed);
  const scene = await openScene(random);
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void scene.close().finally(() => process.exit(1)));
  const customers = await startHonestCustomers(scene.gateway);
  const attacking = chosen.map((attack) => keepAttacking(scene, attack, random));
  const rows: Row[] = [];
  for (let row = 1; row <= options.rows && isRunning(scene.gateway.process); row += 1) {
    rows.push(await watch(scene, customers.take, (options.minutes * 60_000) / options.rows, rows.at(-1)?.minute ?? 0));
    process.stderr.write(`${JSON.stringify(rows.at(-1))}\n`);
  }
  const attacks = await Promise.all(attacking.map((each) => each.stop()));
  await customers.stop();
  const findings = [...judge(rows), ...attacks.flatMap(({ findings: own }) => own)];
  if (customers.failures.length > 0)
    findings.push(`${customers.failures.length} calls of honest customers were not served: ${customers.failures[0]}`);
  findings.push(...(await judgeMoney(scene, customers.told)));
  const { seed } = options;
  const done = attacks.map(({ name, times }) => ({ name, times }));
  process.stdout.write(
    options.json ? `${JSON.stringify({ seed, rows, attacks: done, findings })}\n` : report(seed, rows, done),
  );
  for (const finding of findings) process.stderr.write(`FOUND ${finding}\n`);
  if (findings.length > 0) process.stderr.write(errorsIn(scene.gateway.output()));
  process.exitCode = findings.length === 0 ? 0 : 1;
}

/** Returns the last lines that the gateway logged as errors. */
function errorsIn(output: string): string {
  const lines = output.split('\n').filter((line) => /"level":(50|60)/.test(line));
  return lines
    .slice(-20)
    .map((line) => `${line}\n`)
    .join('');
}

/** Repeats the attack until it is stopped. An attack throws if the gateway misbehaves. */
function keepAttacking(scene: Scene, attack: Attack, random: Random) {
  const findings = new Set<string>();
  let [times, isStopped] = [0, false];
  const go = async () => {
    while (!isStopped && isRunning(scene.gateway.process)) {
      await attack.run(scene, random).catch((error: unknown) => findings.add(`${attack.name}: ${String(error)}`));
      times += 1;
      await pause(random.below(1_000));
    }
  };
  const working = go();
  return {
    stop: async () => {
      isStopped = true;
      await working;
      return { name: attack.name, times, findings: [...findings].slice(0, 3) };
    },
  };
}

/** Measures the process for this long. */
async function watch({ gateway }: Scene, take: () => HonestCall[], forMs: number, afterMinute: number): Promise<Row> {
  const endMs = performance.now() + forMs;
  const lags: number[] = [];
  let last = await vitalsOf(gateway);
  let most: Pick<Vitals, 'rssMiB' | 'descriptors'> = last;
  while (performance.now() < endMs && isRunning(gateway.process)) {
    await pause(LOOK_EVERY_MS);
    const now = await vitalsOf(gateway).catch(() => last);
    lags.push(ownLag(last, now));
    most = { rssMiB: Math.max(most.rssMiB, now.rssMiB), descriptors: Math.max(most.descriptors, now.descriptors) };
    last = now;
  }
  const calls = take();
  const times = calls
    .filter(({ status }) => status === 200)
    .map(({ ms }) => ms)
    .sort((a, b) => a - b);
  return {
    minute: Math.round((afterMinute + forMs / 60_000) * 100) / 100,
    calls: calls.length,
    notServed: calls.length - times.length,
    p50Ms: quantile(times, 0.5),
    p99Ms: quantile(times, 0.99),
    ...most,
    lags: lags.filter((ms) => ms > MAX_LAG_MS).length,
    looks: lags.length,
    worstLagMs: Math.max(0, ...lags),
  };
}

function quantile(sorted: readonly number[], part: number): number {
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0);
}

/** Lists the problems of the process. The first third is for warming up. */
function judge(rows: readonly Row[]): string[] {
  const third = Math.ceil(rows.length / 3);
  const [middle, end] = [rows.slice(third, 2 * third), rows.slice(2 * third)];
  const most = (part: readonly Row[], what: 'rssMiB' | 'descriptors') => Math.max(0, ...part.map((row) => row[what]));
  const findings: string[] = [];
  if (end.length > 0 && most(end, 'rssMiB') > most(middle, 'rssMiB') + MORE_MIB) findings.push('memory has grown');
  if (end.length > 0 && most(end, 'descriptors') > most(middle, 'descriptors') + MORE_DESCRIPTORS)
    findings.push('descriptors are left open');
  const [lags, looks] = [rows.reduce((sum, row) => sum + row.lags, 0), rows.reduce((sum, row) => sum + row.looks, 0)];
  if (lags > looks / 100)
    findings.push(`the event loop stood still for over ${MAX_LAG_MS} ms in ${lags} of ${looks} looks`);
  return findings;
}

/** Compares the costs that honest customers were told with their records, and verifies the whole ledger. */
async function judgeMoney(scene: Scene, told: ReadonlyMap<string, string>): Promise<string[]> {
  const { gateway } = scene;
  if (!isRunning(gateway.process)) return [`the process has ended: ${gateway.output().slice(-2_000)}`];
  const findings: string[] = [];
  const isSound = async () => (await ledgerFault(gateway)) === undefined;
  if (!(await until('the ledger is sound', isSound, 30_000).catch(() => false)))
    findings.push(`the ledger is not sound: ${await ledgerFault(gateway)}`);
  await scene.close();
  const database = await databaseOf(gateway.stores);
  const rows: { id: string; cost: string }[] = await database('usage_records').select(
    'request_id as id',
    database.raw('(cost_e8::numeric / 100000000)::numeric(20, 8)::text AS cost'),
  );
  await database.destroy();
  const recorded = new Map(rows.map(({ id, cost }) => [id, Number(cost)]));
  const wrong = [...told].filter(([id, cost]) => recorded.get(id) !== Number(cost));
  if (wrong.length > 0) findings.push(`${wrong.length} of ${told.size} costs that were told are not in the records`);
  process.stderr.write(`${told.size} costs told to honest customers, ${rows.length} records\n`);
  return findings;
}

function report(seed: number, rows: readonly Row[], attacks: readonly { name: string; times: number }[]): string {
  const heads = [
    'minute',
    'calls',
    'not served',
    'p50 ms',
    'p99 ms',
    'MiB',
    'descriptors',
    `lag > ${MAX_LAG_MS}`,
    'worst lag',
  ];
  const cells = rows.map((row) =>
    [
      row.minute,
      row.calls,
      row.notServed,
      row.p50Ms,
      row.p99Ms,
      row.rssMiB,
      row.descriptors,
      row.lags,
      row.worstLagMs,
    ].map(String),
  );
  const widths = heads.map((head, column) => Math.max(head.length, ...cells.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) => row.map((cell, column) => cell.padStart(widths[column] ?? 0)).join('  ');
  const counts = attacks.map(({ name, times }) => `${String(times).padStart(6)}  ${name}`);
  return [`seed ${seed}`, line(heads), ...cells.map(line), 'attacks, how often:', ...counts, ''].join('\n');
}

void runProgram(main);
