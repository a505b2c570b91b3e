/** `npm run simulation -- --seeds 10000`: runs as many seeds as wanted. Exits with 1 and the seed at the first failure. */
import { Command } from 'commander';
import { simulateAllowances } from './allowance-story';
import { dayOfCalls } from './arithmetic';
import { simulate } from './simulate';

async function main(): Promise<void> {
  const { seeds, from, calls, allowances } = new Command('npm run simulation --')
    .option('--seeds <n>', 'how many', Number, 1_000)
    .option('--from <seed>', 'the first', Number, 1)
    .option('--allowances', 'stories of nodes that take money in advance')
    .option('--calls <n>', 'in place of it, a day of so many calls with random prices, summed up in four ways', Number)
    .parse()
    .opts<{ seeds: number; from: number; calls?: number; allowances?: boolean }>();
  if (calls !== undefined) {
    for (const [name, value] of Object.entries(await dayOfCalls(calls, from)))
      process.stdout.write(`${name.padEnd(11)} ${value}\n`);
    return;
  }
  if (allowances === true) {
    for (const [name, count] of Object.entries(await simulateAllowances(from, from + seeds - 1)))
      process.stdout.write(`${name.padEnd(11)} ${count}\n`);
    process.exit(0);
  }
  let [settled, crashes, losses, repeated, entries] = [0, 0, 0, 0, 0];
  for (let seed = from; seed < from + seeds; seed += 1) {
    const story = await simulate(seed).catch((error: unknown) => {
      throw new Error(`seed ${seed} is wrong; repeat it with --from ${seed} --seeds 1`, { cause: error });
    });
    settled += story.settled;
    crashes += story.crashes;
    losses += story.losses;
    repeated += story.repeated;
    entries += story.entries;
  }
  process.stdout.write(
    `${seeds} seeds, ${crashes} crashes, ${losses} losses of the ledger, ${repeated} repetitions refused, ${entries} entries, ${settled} settlements told: none lost, none twice.\n`,
  );
  process.exit(0);
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? `${error.message}\n${String(error.cause)}` : String(error)}\n`);
  process.exit(1);
});
