/**
 * `.ci/run` and `npm run test:all`: runs one step after the other, and prints a line for each and a table at the end. In the gate, a
 * file with a failed test gets a second look. Exit status 1 when a step has failed.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { runRound } from '../flaky/round';
import { positive } from '../support/program';
import { type Failure, failuresOf, lookAgain, MAX_FLAKY } from './second-look';
import { all, gate, type Step } from './steps';

const PROJECT = resolve(__dirname, '../..');

interface Options {
  readonly all: boolean;
  readonly only?: string;
  readonly seed: number;
  readonly list: boolean;
}

interface Outcome {
  readonly step: Step;
  readonly seconds: number;
  readonly passed: number;
  readonly flaky: readonly Failure[];
  /** Why the step failed; empty if it passed. */
  readonly failed: readonly string[];
}

const command = new Command('gate')
  .description('Runs the steps that a change must pass.')
  .option('--all', 'run everything, as before a release', false)
  .option('--only <text>', 'run only the steps whose name contains this text')
  .option('--seed <n>', 'what the order of the files, the fuzzer and the attacks are chosen by', positive, 1)
  .option('--list', 'print the steps and run nothing', false);

async function main(): Promise<void> {
  const { all: isAll, only = '', seed, list } = command.parse().opts<Options>();
  const steps = (isAll ? all(seed) : gate()).filter(({ name }) => name.includes(only));
  if (list) return void process.stdout.write(steps.map((step) => `${step.name}\n  ${shown(step)}\n`).join(''));
  const outcomes: Outcome[] = [];
  for (const step of steps) {
    process.stdout.write(`\n=== ${step.name}: ${shown(step)}\n`);
    const outcome = await runStep(step, !isAll);
    process.stdout.write(`=== ${row(outcome)}\n`);
    outcomes.push(outcome);
    if (step.isNeeded && outcome.failed.length > 0) break;
  }
  conclude(outcomes);
}

function shown({ command: words, env = {} }: Step): string {
  return [...Object.entries(env).map(([name, value]) => `${name}=${value}`), ...words].join(' ');
}

/** Runs a step, and gives its failed files a second look if that is allowed. */
async function runStep(step: Step, isLookedAtAgain: boolean): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-gate-'));
  const report = join(folder, 'report.json');
  const begunMs = performance.now();
  const end = await runCommand(step, { TEST_REPORT: report });
  const text = await readFile(report, 'utf8').catch(() => undefined);
  await rm(folder, { recursive: true, force: true });
  const passed = text === undefined ? 0 : (JSON.parse(text) as { stats: { passes: number } }).stats.passes;
  const failures = text === undefined ? [] : failuresOf(text, PROJECT);
  const { alone } = step;
  const looked =
    isLookedAtAgain && alone !== undefined && failures.length > 0
      ? await lookAgain(failures, async (file) => {
          process.stdout.write(`=== again, alone: ${file}\n`);
          return runRound([file], undefined, alone);
        })
      : { flaky: [], failed: failures };
  const failed = looked.failed.map(named);
  // A process that ends without a report, or has failed without a failed test, has not run all of them.
  if (end !== undefined && failures.length === 0) failed.push(end);
  return {
    step,
    seconds: Math.round((performance.now() - begunMs) / 1_000),
    passed: passed + looked.flaky.length,
    flaky: looked.flaky,
    failed,
  };
}

/** Runs the command of a step with its whole process group, and returns how it failed; undefined if it did not. */
async function runCommand(step: Step, env: Readonly<Record<string, string>>): Promise<string | undefined> {
  const [program = '', ...args] = step.command;
  const child = spawn(program, args, {
    cwd: PROJECT,
    env: { ...process.env, ...step.env, ...env },
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
  });
  const end = (signal: NodeJS.Signals) => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal);
    } catch {
      // The whole group has already ended.
    }
  };
  const onSignal = (signal: NodeJS.Signals) => {
    end(signal);
    process.exit(1);
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, onSignal);
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    end('SIGKILL');
  }, step.minutes * 60_000);
  const code = await new Promise<number | null>((done, failed) => child.once('error', failed).once('close', done));
  clearTimeout(timer);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, onSignal);
  end('SIGKILL');
  if (isLate) return `it was ended after ${step.minutes} minutes`;
  return code === 0 ? undefined : `it ended with status ${code}`;
}

function named({ file, title }: Failure): string {
  return `${file ?? 'an unknown file'}: ${title}`;
}

function row({ step, seconds, passed, flaky, failed }: Outcome): string {
  const result = failed.length > 0 ? 'FAILED' : flaky.length > 0 ? 'flaky' : 'ok';
  const tests = passed === 0 ? '' : `${passed} passed`;
  return `${step.name.padEnd(32)}${result.padEnd(8)}${String(seconds).padStart(6)} s  ${tests}`.trimEnd();
}

/** Prints the table, what is flaky and what failed; then the line that says how many tests and steps passed and failed. */
function conclude(outcomes: readonly Outcome[]): void {
  const flaky = outcomes.flatMap((outcome) => outcome.flaky);
  const failed = outcomes.flatMap((outcome) => outcome.failed.map((what) => `${outcome.step.name}: ${what}`));
  const flakyFiles = new Set(flaky.map(({ file }) => file)).size;
  if (flakyFiles > MAX_FLAKY) failed.push(`${flakyFiles} files are flaky, more than ${MAX_FLAKY}`);
  const seconds = outcomes.reduce((sum, outcome) => sum + outcome.seconds, 0);
  const passed = outcomes.reduce((sum, outcome) => sum + (outcome.passed || Number(outcome.failed.length === 0)), 0);
  const lines = [
    '',
    ...outcomes.map(row),
    `${'all'.padEnd(40)}${String(seconds).padStart(6)} s`,
    ...flaky.map((failure) => `FLAKY ${named(failure)}`),
    ...failed.map((what) => `FAILED ${what}`),
    `gate: ${passed} passed, ${failed.length} failed`,
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
  process.exitCode = failed.length === 0 ? 0 : 1;
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
});
