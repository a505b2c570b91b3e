/**
 * `npm run fuzz`: sends mutated input to a running gateway through every input that outsiders control, for 10 minutes. The process must survive,
 * answer in time, keep no money held and not grow. It prints the seed of each finding; `--seed N --cases 1` repeats it.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Command } from 'commander';
import { positive, runProgram } from '../support/program';
import { seeded } from '../support/random';
import { until } from '../support/until';
import { ledgerFault, openRig, ownLag, type Rig, type Vitals, vitalsOf } from './rig';
import { addresses } from './targets/addresses';
import { bodies } from './targets/bodies';
import { events } from './targets/events';
import { heads } from './targets/heads';
import { long } from './targets/long';
import { answers, frames } from './targets/ports';
import { requestTargets } from './targets/request-targets';
import { requests } from './targets/requests';
import { streams } from './targets/streams';
import type { Target } from './targets/target';
import { yaml } from './targets/yaml';

const TARGETS: readonly Target[] = [
  heads,
  requestTargets,
  addresses,
  bodies,
  events,
  answers,
  frames,
  requests,
  streams,
  long,
  yaml,
];

/** The number of cases of one target between two checks of the process. */
const BATCH = 20;
/**
 * The longest accepted block of the event loop. A longer one is repeated with the same seeds, and is a finding if it blocks each time.
 */
const MAX_LAG_MS = 90;
const LAG_LOOKS = 3;
/** How many more descriptors the process may have at the end than after its first minute. */
const MORE_DESCRIPTORS = 50;
const MORE_MIB = 200;

interface Options {
  readonly minutes: number;
  readonly seed: number;
  readonly cases: number;
  readonly target?: string;
}

interface Finding {
  readonly target: string;
  readonly seed: number;
  readonly what: string;
}

const command = new Command('npm run fuzz --')
  .description('Sends mutated input to a running gateway and prints the seed of whatever it does wrong.')
  .option('--minutes <n>', 'how long', positive, 10)
  .option('--seed <n>', 'the first seed; each case has the next', positive, Math.floor(Date.now() / 1_000))
  .option('--cases <n>', 'at most this many cases of each target', positive, Number.POSITIVE_INFINITY)
  .option('--target <name>', `one of ${TARGETS.map(({ name }) => name).join(', ')}; all without`)
  .addHelpText(
    'after',
    `\nTargets:\n${TARGETS.map(({ name, summary }) => `  ${name.padEnd(8)} ${summary}`).join('\n')}`,
  );

async function main(): Promise<void> {
  const options = command.parse().opts<Options>();
  const targets = TARGETS.filter(({ name }) => options.target === undefined || name === options.target);
  if (targets.length === 0) throw new Error(`There is no target "${options.target}".`);
  const rig = await openRig();
  const findings: Finding[] = [];
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void rig.close().finally(() => process.exit(1)));
  try {
    await fuzz(rig, targets, options, findings);
  } finally {
    await rig.close();
  }
  for (const { target, seed, what } of findings)
    process.stdout.write(
      `FOUND ${target}: ${what}\n  npm run fuzz -- --target ${target} --seed ${seed} --cases ${BATCH}\n`,
    );
  process.exitCode = findings.length === 0 ? 0 : 1;
}

async function fuzz(rig: Rig, targets: readonly Target[], options: Options, findings: Finding[]): Promise<void> {
  const endMs = performance.now() + options.minutes * 60_000;
  const counts = new Map(targets.map(({ name }) => [name, 0]));
  let seed = options.seed;
  let first: Vitals | undefined;
  let worstLagMs = 0;
  await vitalsOf(rig.gateway);
  for (let cases = 0; cases < options.cases && performance.now() < endMs; cases += BATCH) {
    for (const target of targets) {
      const { finding, lagMs } = await runBatch(rig, target, seed);
      counts.set(target.name, (counts.get(target.name) ?? 0) + BATCH);
      worstLagMs = Math.max(worstLagMs, lagMs);
      if (finding !== undefined) findings.push({ target: target.name, seed, what: finding });
      if (hasEnded(rig)) return;
    }
    seed += BATCH;
    first ??= await vitalsOf(rig.gateway);
  }
  const last = await restingVitals(rig);
  const told = [...counts].map(([name, count]) => `${name} ${count}`).join(', ');
  process.stdout.write(`seeds ${options.seed} to ${seed - 1}; cases: ${told}\n`);
  process.stdout.write(
    `longest lag ${worstLagMs} ms; ${show(first)} after the first round, ${show(last)} at the end\n`,
  );
  if (first !== undefined && last.descriptors > first.descriptors + MORE_DESCRIPTORS)
    findings.push({ target: 'all', seed: options.seed, what: 'descriptors are left open' });
  if (first !== undefined && last.rssMiB > first.rssMiB + MORE_MIB)
    findings.push({ target: 'all', seed: options.seed, what: 'memory has grown' });
}

/** Runs one target's cases from this seed on, and checks the process afterwards. */
async function runBatch(rig: Rig, target: Target, seed: number): Promise<{ finding?: string; lagMs: number }> {
  let lagMs = Number.POSITIVE_INFINITY;
  for (let look = 0; look < LAG_LOOKS && lagMs > MAX_LAG_MS; look += 1) {
    const before = await vitalsOf(rig.gateway);
    for (let each = seed; each < seed + BATCH; each += 1) {
      try {
        await target.run(rig, seeded(each));
      } catch (error) {
        if (!hasEnded(rig)) return { finding: `seed ${each}: ${String(error)}`, lagMs: 0 };
      }
      if (hasEnded(rig)) return { finding: `seed ${each}: the gateway ended: ${lastLines(rig)}`, lagMs: 0 };
    }
    if (target.isOfGateway) lagMs = Math.min(lagMs, ownLag(before, await vitalsOf(rig.gateway)));
    else lagMs = 0;
  }
  const fault = await findInLedger(rig);
  if (fault !== undefined) return { finding: fault, lagMs };
  return lagMs > MAX_LAG_MS ? { finding: `the event loop stood still for ${lagMs} ms`, lagMs } : { lagMs };
}

async function findInLedger({ gateway }: Rig): Promise<string | undefined> {
  const isSound = async () => (await ledgerFault(gateway)) === undefined;
  if (await until('the ledger is sound', isSound, 5_000).catch(() => false)) return undefined;
  return `the ledger is not sound: ${await ledgerFault(gateway)}`;
}

/** Measures the process after abandoned connections have timed out. */
async function restingVitals({ gateway }: Rig): Promise<Vitals> {
  for (let look = 0; look < 10; look += 1) await pause(500);
  return vitalsOf(gateway);
}

function hasEnded({ gateway }: Rig): boolean {
  return gateway.process.exitCode !== null || gateway.process.signalCode !== null;
}

function lastLines({ gateway }: Rig): string {
  return gateway.output().trim().split('\n').slice(-2).join(' | ').slice(-1_000);
}

function show(vitals: Vitals | undefined): string {
  return vitals === undefined ? 'nothing' : `${vitals.rssMiB} MiB, ${vitals.descriptors} descriptors`;
}

void runProgram(main);
