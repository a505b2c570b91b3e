/**
 * `npm run mutation:vendor`: breaks the code of holds and charges on purpose, one thing at a time, in a copy of the project, and shows that a test
 * about a vendor's bill fails. Exit status 1 when a mutant survives.
 */
import { Command } from 'commander';
import { positive, runProgram } from '../support/program';
import { mutantsNamed, mutateSources } from './mutate-sources';
import { VENDOR_MUTANTS } from './vendor-mutants';

const command = new Command('npm run mutation:vendor --')
  .description('Breaks holds and charges in a copy of the project. STORES is embedded (default) or real.')
  .option('--only <text>', 'only mutants whose name contains this')
  .option('--calls <n>', 'calls at the adversarial vendor', positive, 400)
  .addHelpText('after', `\nMutants:\n${VENDOR_MUTANTS.map(({ name }) => `  ${name}`).join('\n')}`);

async function main(): Promise<void> {
  const { only = '', calls } = command.parse().opts<{ only?: string; calls: number }>();
  await mutateSources(mutantsNamed(VENDOR_MUTANTS, only, command), { ADVERSARY_CALLS: String(calls) });
}

void runProgram(main);
