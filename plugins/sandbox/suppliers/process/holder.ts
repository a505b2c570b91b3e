import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { Ambiguous, Rejected } from '../supplier';
import { joinWords, removeGroups } from './bounds';
import { type Launcher, PATH, type StartedProgram } from './launcher';
import { send } from './marked-processes';
import { holderWords, isReady } from './namespaces';

/** The process that keeps an instance's namespaces. It outlives the gateway, and its end ends everything in the instance. */
export interface Holder {
  readonly pid: number;
  /** Distinguishes it from a later process with the same number. */
  readonly startedAt: string;
  /** The control groups of all processes of the instance. */
  readonly groups: readonly string[];
}

const STARTS_WITHIN_MS = 20_000;

/** A holder that ends with this process until `keep` is called. */
export interface StartedHolder {
  readonly holder: Holder;
  keep(): Promise<void>;
}

/** Starts the holder of an instance. `holderWords` describes its files. @throws Rejected if bubblewrap does not work */
export async function startHolder(
  launcher: Launcher,
  root: string,
  groups: readonly string[],
  marks: Readonly<Record<string, string>>,
  memoryBytes: number | undefined,
): Promise<StartedHolder> {
  const argv = [...joinWords(groups), ...holderWords(root, marks, memoryBytes)];
  let started: StartedProgram | undefined;
  try {
    started = await launcher.start({ argv, cwd: '/', env: { PATH }, streams: 4 });
    const [input, stdout, stderr, info] = started.streams as [Socket, Socket, Socket, Socket];
    const [pid] = await Promise.all([readPid(info), mustBeReady(stdout, stderr)]);
    // If the holder has ended meanwhile, the next inspection finds that.
    input.on('error', () => undefined).resume();
    const keep = () => new Promise<void>((resolve) => input.end('\n', () => resolve()));
    for (const stream of [stdout, stderr, info]) stream.destroy();
    return { holder: { pid, startedAt: (await startOf(pid)) ?? '', groups }, keep };
  } catch (error) {
    for (const stream of started?.streams ?? []) stream.destroy();
    if (started !== undefined) send(started.pid, 'SIGKILL');
    throw new Rejected(`the instance cannot be isolated: ${(error as Error).message}`, {
      isTemporary: true,
      cause: error,
    });
  }
}

async function readPid(info: Socket): Promise<number> {
  return (JSON.parse(await text(info)) as { 'child-pid': number })['child-pid'];
}

async function mustBeReady(stdout: Socket, stderr: Socket): Promise<void> {
  const timeout = setTimeout(() => stdout.destroy(new Error('bubblewrap does not start')), STARTS_WITHIN_MS);
  const complaint = text(stderr).catch(() => '');
  let printed = '';
  try {
    for await (const bytes of stdout) {
      printed += String(bytes);
      if (isReady(printed)) return;
    }
  } finally {
    clearTimeout(timeout);
  }
  throw new Error((await complaint).trim() || 'bubblewrap ended at once');
}

export async function isAlive({ pid, startedAt }: Holder): Promise<boolean> {
  return startedAt === (await startOf(pid));
}

const ENDS_WITHIN_MS = 20_000;

/** Ends everything in an instance: the kernel kills a process namespace with its first process. @throws Ambiguous */
export async function endHolder(holder: Holder): Promise<void> {
  const deadline = Date.now() + ENDS_WITHIN_MS;
  while (await isAlive(holder)) {
    if (Date.now() > deadline) throw new Ambiguous('processes of the instance still run');
    send(holder.pid, 'SIGKILL');
    await sleep(5);
  }
}

/** Ends the holder of an instance that has one, and removes its groups. @throws Ambiguous */
export async function endHolderOf({ holder }: { readonly holder?: Holder | undefined }): Promise<void> {
  if (holder === undefined) return;
  await endHolder(holder);
  await removeGroups(holder.groups);
}

/** Returns when a process was started, in clock ticks since the boot; undefined if it has ended. */
async function startOf(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '');
  // The process name before the last bracket may hold blanks and brackets.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
}
