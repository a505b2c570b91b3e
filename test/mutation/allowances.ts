/**
 * `npm run mutation:allowances`: breaks the allowances of nodes on purpose, one thing at a time, in a copy of the project, and shows that the
 * simulation or a test fails. Exit status 1 when a mutant survives.
 */
import { Command } from 'commander';
import { positive, runProgram } from '../support/program';
import { ALLOWANCE_MUTANTS } from './allowance-mutants';
import { mutantsNamed, mutateSources } from './mutate-sources';

const command = new Command('npm run mutation:allowances --')
  .description('Breaks allowances in a copy of the project.')
  .option('--only <text>', 'only mutants whose name contains this')
  .option('--seeds <n>', 'stories that the simulation tells of each', positive, 1_000)
  .addHelpText('after', `\nMutants:\n${ALLOWANCE_MUTANTS.map(({ name }) => `  ${name}`).join('\n')}`);

async function main(): Promise<void> {
  const { only = '', seeds } = command.parse().opts<{ only?: string; seeds: number }>();
  await mutateSources(mutantsNamed(ALLOWANCE_MUTANTS, only, command), { SIMULATED_SEEDS: String(seeds) });
}

void runProgram(main);
