import type { Duplex, Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import * as supplier from '../supplier';
import { type DockerEngine, type EngineAnswer, messageOf } from './engine';

/** How long output is still read after the command's end, because a process that the command left behind may hold the stream open. */
const LINGER_MS = 200;
const LOOK_EVERY_MS = 250;
const START_LOOK_EVERY_MS = 10;

interface ExecOptions {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly stdin?: Buffer | undefined;
}

export function shellCommand({ id, command, cwd, env, stdin }: supplier.CommandSpec): ExecOptions {
  const { [DOCKER_COMMAND_MARK]: _, ...variables } = env;
  return {
    argv: ['/bin/sh', '-c', command],
    // Put the variable that marks the command first, so that the search for the command's processes finds it soon.
    env: { [DOCKER_COMMAND_MARK]: id, ...variables },
    cwd: folderOf(cwd),
    stdin,
  };
}

/** Returns a command's folder as an absolute path inside the instance. */
export function folderOf(cwd = ''): string {
  return cwd.startsWith('/') ? cwd : `${supplier.WORK_FOLDER}/${cwd}`;
}

/** Starts a program in an instance. @throws InstanceGone, NotRunning, NotSupported, NotSent, Ambiguous */
export async function startExec(
  engine: DockerEngine,
  { id }: supplier.InstanceReference,
  options: ExecOptions,
): Promise<supplier.RunningCommand> {
  const hasInput = options.stdin !== undefined;
  const created = await engine.ask('POST', `/containers/${id}/exec`, {
    body: {
      AttachStdin: hasInput,
      AttachStdout: true,
      AttachStderr: true,
      Cmd: options.argv,
      Env: Object.entries(options.env).map(([name, value]) => `${name}=${value}`),
      WorkingDir: options.cwd ?? '/',
    },
  });
  if (created.status !== 201) throw refusalOf(created);
  const { Id: execId } = created.body as { Id: string };
  const started = await engine.hijack(`/exec/${execId}/start`, { Detach: false, Tty: false });
  if (started.stream === undefined) throw refusalOf(started);
  const { stream } = started;
  // The reader of the stream reports its errors.
  stream.on('error', () => undefined);
  await mustHaveStarted(engine, execId, stream);
  if (hasInput) stream.end(options.stdin);
  const watch = watchEnd(engine, execId);
  watch.exit.then(
    () => setTimeout(() => stream.destroy(), LINGER_MS).unref(),
    () => stream.destroy(),
  );
  return { output: framesOf(stream, watch.lookNow), exit: watch.exit };
}

/** Waits until the program runs. The engine opens the stream before it starts the program, and writes a failed start into the stream. */
async function mustHaveStarted(engine: DockerEngine, execId: string, stream: Duplex): Promise<void> {
  for (;;) {
    const { pid, exitCode } = await look(engine, execId);
    if (pid > 0) return;
    if (exitCode !== undefined) break;
    await sleep(START_LOOK_EVERY_MS);
  }
  let message = '';
  for await (const { bytes } of readFrames(stream)) message += bytes.toString();
  throw startFailure(message.trim());
}

function startFailure(message: string): supplier.SupplierError {
  if (/paused|not running/.test(message)) return new supplier.NotRunning(message);
  if (LACKING.test(message)) return new supplier.NotSupported(`the image cannot run it: ${message}`);
  return new NotStarted(`the engine could not start it: ${message}`);
}

/** The messages of runtimes for a program that does not exist or cannot be executed. Every other message is a failure of the runtime. */
const LACKING = /not found|no such file or directory|not a directory|permission denied|exec format error/;

/** The engine's runtime failed before the program ran. */
class NotStarted extends supplier.Ambiguous {}

/** Polls for the command's end, because the engine keeps the stream open as long as any process holds it. */
function watchEnd(engine: DockerEngine, execId: string): { exit: Promise<supplier.CommandExit>; lookNow: () => void } {
  let wake = new AbortController();
  const ended = async (): Promise<supplier.CommandExit> => {
    for (;;) {
      await sleep(LOOK_EVERY_MS, undefined, { signal: wake.signal }).catch(() => (wake = new AbortController()));
      // The engine may not answer for a while. A command that it no longer knows is lost.
      const seen = await look(engine, execId).catch((error: unknown) => {
        if (error instanceof supplier.InstanceGone) throw error;
        return undefined;
      });
      if (seen?.exitCode !== undefined) return { exitCode: seen.exitCode };
    }
  };
  const exit = ended();
  exit.catch(() => undefined);
  return { exit, lookNow: () => wake.abort() };
}

async function look(engine: DockerEngine, execId: string): Promise<{ pid: number; exitCode: number | undefined }> {
  const answer = await engine.ask('GET', `/exec/${execId}/json`);
  if (answer.status === 404) throw new supplier.InstanceGone(messageOf(answer));
  if (answer.status !== 200) throw new supplier.Ambiguous(messageOf(answer));
  const { Running: isRunning, ExitCode: exitCode, Pid: pid } = answer.body as ExecDetails;
  return { pid, exitCode: isRunning || exitCode === null ? undefined : exitCode };
}

interface ExecDetails {
  readonly Running: boolean;
  readonly ExitCode: number | null;
  /** The process id: 0 until the program runs, and always 0 if the program could not be started. */
  readonly Pid: number;
}

async function* framesOf(stream: Duplex, lookNow: () => void): AsyncGenerator<supplier.OutputFrame> {
  try {
    yield* readFrames(stream);
  } catch (error) {
    // The driver destroyed the stream after the command's end, or the engine stopped. `exit` reports both cases.
    if (!stream.destroyed) throw error;
  } finally {
    stream.destroy();
    lookNow();
  }
}

function refusalOf(answer: EngineAnswer): supplier.SupplierError {
  const message = messageOf(answer);
  if (answer.status === 404) return new supplier.InstanceGone(message);
  if (answer.status === 409) return new supplier.NotRunning(message);
  return new supplier.Ambiguous(message);
}

/** Runs a short command of the driver and waits for its end. */
export async function runExec(engine: DockerEngine, reference: supplier.InstanceReference, options: ExecOptions) {
  const command = await startOwn(engine, reference, options);
  const kept = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  for await (const { stream, bytes } of command.output) kept[stream].push(bytes);
  const { exitCode } = await command.exit;
  return { exitCode, stdout: Buffer.concat(kept.stdout), stderr: Buffer.concat(kept.stderr).toString() };
}

/**
 * Starts a short command of the driver and retries a failed start. The engine's runtime uses threads that count as processes of
 * the instance, so a start may fail in a full instance. Running these commands twice does no harm.
 */
async function startOwn(
  engine: DockerEngine,
  reference: supplier.InstanceReference,
  options: ExecOptions,
): Promise<supplier.RunningCommand> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startExec(engine, reference, options);
    } catch (error) {
      if (!(error instanceof NotStarted) || attempt === START_ATTEMPTS) throw error;
    }
  }
}

const START_ATTEMPTS = 20;

const HEADER_BYTES = 8;
const STDERR = 2;

/**
 * Yields the frames of the engine's multiplexed stream. Each has a header (stream, three zeros, length as big-endian uint32) and
 * that many bytes. Bytes are yielded as they arrive, before their frame is complete. A stream may end in the middle of a frame.
 */
async function* readFrames(stream: Readable): AsyncGenerator<supplier.OutputFrame> {
  let header: Buffer = Buffer.alloc(0);
  let left = 0;
  for await (const piece of stream as AsyncIterable<Buffer>) {
    let rest = piece;
    while (rest.length > 0) {
      if (left === 0) {
        const missing = HEADER_BYTES - header.length;
        header = Buffer.concat([header, rest.subarray(0, missing)]);
        rest = rest.subarray(missing);
        if (header.length < HEADER_BYTES) break;
        left = header.readUInt32BE(4);
        if (left > 0) continue;
      } else {
        const bytes = rest.subarray(0, left);
        rest = rest.subarray(bytes.length);
        left -= bytes.length;
        yield { stream: header[0] === STDERR ? 'stderr' : 'stdout', bytes };
      }
      if (left === 0) header = Buffer.alloc(0);
    }
  }
}

/** The variable that marks every command. All processes that the command starts inherit it. */
export const DOCKER_COMMAND_MARK = 'TOLLGATE_COMMAND';

/**
 * Signals the processes of a command from inside the instance. These are the processes with the command's mark in their environment, and
 * their whole sessions, because the engine begins a session with every exec. `$1` is the mark with the command's id. `$2` is the signal's
 * name without SIG, or 0 to only look. Before KILL the script stops all of the processes, until it finds no new one, so that none starts
 * another meanwhile. The script starts no process itself, because a command may have used up the instance's limit. It exits with 0 if it
 * found a process, with 1 if it found none, with 2 if some processes remain.
 */
const SCRIPT = `
is_marked() {
  while read -r line || [ -n "$line" ]; do
    case "$line" in *"$mark"*) return 0;; esac
  done 2>/dev/null < "$1/environ"
  return 1
}
session_of() {
  all=
  while read -r line || [ -n "$line" ]; do all="$all $line"; done 2>/dev/null < "$1/stat"
  set -- \${all##*) }
  session=$4
  [ -n "$session" ] && [ "$1" != Z ]
}
find_all() {
  sessions=' ' found=
  for folder in /proc/[0-9]*; do
    is_marked "$folder" && session_of "$folder" && sessions="$sessions$session "
  done
  [ "$sessions" = ' ' ] && return
  for folder in /proc/[0-9]*; do
    session_of "$folder" || continue
    case "$sessions" in *" $session "*) found="$found \${folder#/proc/}";; esac
  done
}
mark=$1 signal=$2 any=1 stopped= round=0
while [ $round -lt 50 ]; do
  find_all
  [ -z "$found" ] && exit $any
  any=0
  [ "$signal" = 0 ] && exit 0
  if [ "$signal" != KILL ]; then
    kill -s "$signal" $found 2>/dev/null
    exit 0
  fi
  if [ "$found" = "$stopped" ]; then kill -s KILL $found 2>/dev/null; else kill -s STOP $found 2>/dev/null; fi
  stopped=$found
  round=$((round + 1))
done
exit 2
`;

/** The exit code of `signalCommand` if some processes remain. */
export const SOME_ARE_LEFT = 2;

export function signalCommand(commandId: string, signal: supplier.CommandSignal | 0): readonly string[] {
  return [
    '/bin/sh',
    '-c',
    SCRIPT,
    'signal',
    `${DOCKER_COMMAND_MARK}=${commandId}`,
    signal === 0 ? '0' : signal.slice('SIG'.length),
  ];
}
