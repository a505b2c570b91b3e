import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { startEnclosed } from './enclosure';

/** Asks a program of this machine, and returns what it prints. */
export async function ask(program: string, words: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(program, words, { maxBuffer: 64 * 2 ** 20 });
  return stdout;
}

/** Runs a command on this machine's files, and throws when it fails. After the signal no process of it is left. */
export async function run(command: readonly string[], signal: AbortSignal, env = process.env): Promise<void> {
  const { exitStatus } = await (await startEnclosed({ command, env, signal })).ended;
  signal.throwIfAborted();
  if (exitStatus !== 0) throw new Error(`${command.join(' ')}: exit status ${exitStatus ?? 'unknown'}`);
}
