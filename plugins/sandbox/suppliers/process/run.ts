import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { Readable, type Writable } from 'node:stream';
import type { CommandExit, OutputFrame, RunningCommand } from '../../../../core/supplier';

/** Where programs are looked for, in instances and for what starts them. */
export const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** What a process that holds on to the output may still print after the command itself has ended. */
const LINGER_MS = 200;

export interface RunOptions {
  readonly argv: readonly string[];
  readonly cwd: string;
  /** All of its environment: nothing of the gateway's own. */
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: Buffer | undefined;
  /** What the program reads from its descriptor 3. */
  readonly words?: readonly string[];
}

/** Starts a program as the first of a new session and group. Rejects when it cannot be started. */
export async function startProcess({
  argv,
  cwd,
  env,
  stdin,
  words: given,
}: RunOptions): Promise<RunningCommand & { pid: number }> {
  const [program = '', ...words] = argv;
  const stdio = Array<'pipe'>(given === undefined ? 3 : 4).fill('pipe');
  const child = spawn(program, words, { cwd, env, detached: true, stdio });
  const exit = new Promise<CommandExit>((resolve) =>
    child.once('exit', (code, signal) => resolve({ exitCode: code ?? 128 + constants.signals[signal ?? 'SIGKILL'] })),
  );
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
  // A command that does not read its input closes it.
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(stdin);
  const descriptor = child.stdio[3] as Writable | undefined;
  descriptor?.on('error', () => undefined);
  descriptor?.end(given?.map((word) => `${word}\0`).join(''));
  return { pid: child.pid ?? 0, exit, output: outputOf(child, exit) };
}

/** Both streams in the order they were read; read no faster than asked for. */
function outputOf(child: ChildProcess, exit: Promise<CommandExit>): AsyncIterable<OutputFrame> {
  const sources = [
    ['stdout', child.stdout],
    ['stderr', child.stderr],
  ] as const;
  const frames = new Readable({
    objectMode: true,
    highWaterMark: 16,
    read: () => {
      for (const [, source] of sources) source?.resume();
    },
    destroy: (error, done) => {
      for (const [, source] of sources) source?.destroy();
      done(error);
    },
  });
  for (const [stream, source] of sources) {
    source?.pause();
    source?.on('data', (bytes: Buffer) => {
      if (!frames.push({ stream, bytes })) for (const [, each] of sources) each?.pause();
    });
  }
  child.once('close', () => frames.push(null));
  void exit.then(() =>
    setTimeout(() => {
      for (const [, source] of sources) if (source?.isPaused() === false) source.destroy();
    }, LINGER_MS).unref(),
  );
  return frames as AsyncIterable<OutputFrame>;
}
