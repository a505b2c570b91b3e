import { type Ended, type RunningWork, startEnclosed } from './enclosure';
import { failuresIn } from './failures';
import type { Outcome } from './report';

/** A checkout in a bare machine. */
export interface Checkout {
  /** The folder that has the bare machine. */
  readonly root: string;
  /** The folder of the checkout, as the bare machine sees it. */
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
}

/** Starts a command in the folder of the checkout. */
export function startIn(
  { root, folder, env }: Checkout,
  command: readonly string[],
  signal: AbortSignal,
  onOutput: (output: string) => void = () => undefined,
): Promise<RunningWork> {
  return startEnclosed({ root, env, command: ['env', '--chdir', folder, ...command], signal, onOutput });
}

/** Runs a command to its end, and returns how it failed. */
export async function runIn(at: Checkout, command: readonly string[], signal: AbortSignal): Promise<Outcome> {
  const work = await startIn(at, command, signal);
  return outcomeOf(await work.ended);
}

export function outcomeOf({ exitStatus, output }: Ended): Outcome {
  if (exitStatus === 0) return { failures: [] };
  const problem = exitStatus === undefined ? 'killed by a signal' : `exit status ${exitStatus}`;
  return { problem, failures: failuresIn(output) };
}
