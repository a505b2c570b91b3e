/** `npm run simulation -- --seeds 10000`: as many stories as there is time for. Ends with 1 and the seed at the first that is wrong. */
import { Command } from 'commander';
import { simulate } from './simulate';

async function main(): Promise<void> {
  const { seeds, from } = new Command('npm run simulation --')
    .option('--seeds <n>', 'how many', Number, 1_000)
    .option('--from <seed>', 'the first', Number, 1)
    .parse()
    .opts<{ seeds: number; from: number }>();
  let [settled, crashes, entries] = [0, 0, 0];
  for (let seed = from; seed < from + seeds; seed += 1) {
    const story = await simulate(seed).catch((error: unknown) => {
      throw new Error(`seed ${seed} is wrong; repeat it with --from ${seed} --seeds 1`, { cause: error });
    });
    settled += story.settled;
    crashes += story.crashes;
    entries += story.entries;
  }
  process.stdout.write(
    `${seeds} seeds, ${crashes} crashes, ${entries} entries, ${settled} settlements told: none lost, none twice.\n`,
  );
  process.exit(0);
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? `${error.message}\n${String(error.cause)}` : String(error)}\n`);
  process.exit(1);
});
