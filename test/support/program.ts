import { InvalidArgumentError } from 'commander';
import { mochaGlobalTeardown } from './shared';

/** Reads an option's value. @throws InvalidArgumentError */
export function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new InvalidArgumentError('It must be a number above 0.');
  return value;
}

/** Runs a program that uses the shared stores, then stops them and ends the process, with status 2 if it could not run. */
export async function runProgram(main: () => Promise<void>): Promise<void> {
  try {
    await main();
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exitCode = 2;
  }
  await mochaGlobalTeardown();
  process.exit();
}
