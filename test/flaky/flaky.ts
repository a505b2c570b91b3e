/**
 * `npm run flaky -- FILE... --times N`: repeats test files while all cores are busy, and prints each failed test with its number of failures. Several
 * files run two at a time in one round, as in `npm test`. Exit status 1 when a test has failed.
 */
import { availableParallelism } from 'node:os';
import { Command, InvalidArgumentError } from 'commander';
import { keepCoresBusy } from './load';
import { runRound } from './round';
import { summarize, table } from './summary';

interface Options {
  readonly times: number;
  readonly grep?: string;
  readonly load: number;
  readonly json: boolean;
}

const command = new Command('npm run flaky --')
  .description('Runs test files many times under CPU load and prints what failed.')
  .argument('<files...>', 'test files, or globs in quotes; one that begins with "!" is left out')
  .option('--times <n>', 'how many rounds', atLeast(1), 50)
  .option('--grep <text>', 'run only tests whose title contains this text')
  .option('--load <n>', 'how many processes keep cores busy', atLeast(0), availableParallelism())
  .option('--json', 'print JSON instead of a table', false);

function atLeast(least: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!Number.isInteger(value) || value < least)
      throw new InvalidArgumentError(`It must be an integer from ${least}.`);
    return value;
  };
}

async function main(): Promise<void> {
  command.parse();
  const files = command.args;
  const { times, grep, load, json } = command.opts<Options>();
  const stopLoad = keepCoresBusy(load);
  const rounds = [];
  try {
    for (let number = 1; number <= times; number += 1) {
      const round = await runRound(files, grep);
      rounds.push(round);
      const { passed, failures, seconds } = round;
      process.stderr.write(`round ${number} of ${times}: ${passed} passed, ${failures.length} failed, ${seconds} s\n`);
      for (const { title, message } of failures) process.stderr.write(`  ${title}\n    ${message}\n`);
    }
  } finally {
    stopLoad();
  }
  const summary = summarize(rounds);
  process.stdout.write(json ? `${JSON.stringify(summary, undefined, 2)}\n` : table(summary));
  process.exitCode = summary.failed.length === 0 ? 0 : 1;
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
