import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { CommandExit, OutputFrame, RunningCommand } from '../supplier';
import type { Launcher } from './launcher';
import type { Program } from './launcher-process';

/** How long output is still read after the command's end, because a process that it left behind may hold the stream open. */
const LINGER_MS = 200;

export interface RunOptions extends Omit<Program, 'streams'> {
  readonly stdin: Buffer | undefined;
}

/** Starts a program as the first process of a new session and group. Rejects if it cannot be started. @throws Ambiguous */
export async function startProcess(
  launcher: Launcher,
  { stdin, ...program }: RunOptions,
): Promise<RunningCommand & { pid: number }> {
  const { pid, streams, exit } = await launcher.start({ ...program, streams: 3 });
  const [input, stdout, stderr] = streams as [Socket, Socket, Socket];
  // A command that does not read its input closes it, which is no error. Anything that it writes there is discarded.
  input.on('error', () => undefined).resume();
  input.end(stdin ?? '');
  return { pid, exit, output: outputOf({ stdout, stderr }, exit) };
}

/** Returns both streams in the order they were read. It reads no faster than its consumer. */
function outputOf(
  streams: Readonly<Record<'stdout' | 'stderr', Socket>>,
  exit: Promise<CommandExit>,
): AsyncIterable<OutputFrame> {
  const sources = [streams.stdout, streams.stderr];
  const frames = new Readable({
    objectMode: true,
    highWaterMark: 16,
    read: () => {
      for (const source of sources) source.resume();
    },
    destroy: (error, done) => {
      for (const source of sources) source.destroy();
      done(error);
    },
  });
  const ends = (['stdout', 'stderr'] as const).map((stream) => {
    const source = streams[stream];
    source.pause();
    source.on('data', (bytes: Buffer) => {
      if (!frames.push({ stream, bytes })) for (const each of sources) each.pause();
    });
    // The stream may have ended before this listener was added.
    return finished(source).catch(() => undefined);
  });
  const end = exit.catch(() => undefined);
  void Promise.all([...ends, end]).then(() => frames.push(null));
  void end.then(() =>
    setTimeout(() => {
      for (const source of sources) if (!source.isPaused()) source.destroy();
    }, LINGER_MS).unref(),
  );
  return frames as AsyncIterable<OutputFrame>;
}
