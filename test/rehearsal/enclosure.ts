import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { makeCgroup } from './cgroup';

const ENCLOSE = join(__dirname, 'enclose.sh');
const ENTER = join(__dirname, 'enter.sh');

export interface Work {
  readonly command: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** The folder that becomes the root of the file system; without it, the machine's root stays. */
  readonly root?: string;
  /** Ends every process of the work. */
  readonly signal: AbortSignal;
  /** Receives all that the work prints so far, each time it prints. */
  readonly onOutput?: (output: string) => void;
}

export interface RunningWork {
  /** Sends SIGINT as a terminal does on Ctrl-C. */
  interrupt(): void;
  /** Resolves when every process of the work has ended and its cgroup is removed. */
  readonly ended: Promise<Ended>;
}

export interface Ended {
  /** Undefined when a signal ended the work. */
  readonly exitStatus: number | undefined;
  readonly output: string;
}

let count = 0;

/** Starts a command in namespaces and a cgroup of its own, so that nothing of it outlives it. Copies its output to stderr. */
export async function startEnclosed({ command, env, root, signal, onOutput }: Work): Promise<RunningWork> {
  signal.throwIfAborted();
  count += 1;
  const cgroup = await makeCgroup(`tollgate-rehearsal-${process.pid}-${count}`);
  const hierarchies = cgroup.hierarchies.join(' ');
  const entered = root === undefined ? command : [ENTER, root, cgroup.name, hierarchies, ...command];
  const words = [...NAMESPACES, ENCLOSE, cgroup.name, hierarchies, ...entered];
  // A process group of its own: Ctrl-C in a terminal reaches the rehearsal only, which then cleans up.
  const child = spawn('setpriv', words, { env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  const send = (name: NodeJS.Signals) => signalGroup(child.pid, name);
  const kill = () => void cgroup.thaw().finally(() => send('SIGKILL'));
  signal.addEventListener('abort', kill, { once: true });
  if (signal.aborted) kill();
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      process.stderr.write(text);
      output += text;
      onOutput?.(output);
    });
  }
  const closed = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve));
  const end = async (): Promise<Ended> => {
    try {
      return { exitStatus: (await closed) ?? undefined, output };
    } finally {
      signal.removeEventListener('abort', kill);
      await cgroup.remove();
    }
  };
  return { interrupt: () => send('SIGINT'), ended: end() };
}

/** When the rehearsal is killed, `unshare` is killed, then the first process of the namespace, and with it all others. */
const NAMESPACES = [
  ...['--pdeathsig', 'KILL', 'unshare', '--mount', '--propagation', 'private', '--uts', '--ipc'],
  ...['--pid', '--fork', '--kill-child', '--'],
];

function signalGroup(leader: number | undefined, name: NodeJS.Signals): void {
  try {
    if (leader !== undefined) process.kill(-leader, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
