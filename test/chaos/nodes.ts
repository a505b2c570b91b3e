import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../support/free-port';
import { type GatewayOptions, startGateway, type TestGateway } from '../support/gateway';
import { endInstances } from '../support/instances';
import type { Random } from '../support/random';
import { until } from '../support/until';

/** The real server with its workers, with a data folder that outlives it. */
export interface Node {
  /** undefined while it is not there. */
  current(): TestGateway | undefined;
  /** Starts it; tries again while a store it needs is away. */
  start(): Promise<void>;
  /** SIGKILL to all of its processes. */
  kill(): Promise<void>;
  /** SIGKILL to the primary alone; resolves when the workers have ended by themselves. */
  killPrimary(): Promise<void>;
  /** SIGKILL to one worker; the primary starts another. */
  killWorker(random: Random): void;
  /** SIGSTOP to all of its processes, and after that time SIGCONT. */
  stall(milliseconds: number): Promise<void>;
  stallWorker(random: Random, milliseconds: number): Promise<void>;
  remove(): Promise<void>;
}

/** Workers end what they are at before they end. */
const WORKERS_END_MS = 180_000;

export async function makeNode(options: GatewayOptions, note: (line: string) => void, workers = 1): Promise<Node> {
  const dataFolder = await mkdtemp(join(tmpdir(), 'tollgate-chaos-node-'));
  // Whichever worker has the admin listener, it is at this port.
  const env = { WORKERS: String(workers), ADMIN_PORT: String(await freePort()) };
  let gateway: TestGateway | undefined;
  const stallAll = async (pids: readonly number[], milliseconds: number) => {
    send(pids, 'SIGSTOP');
    await new Promise((wake) => setTimeout(wake, milliseconds));
    send(pids, 'SIGCONT');
  };
  const processes = () => (gateway === undefined ? [] : [gateway.pid, ...workersOf(gateway.pid)]);
  /** A node with one worker has no primary beside it. */
  const oneWorker = (random: Random) => {
    const [first, ...others] = processes();
    return others.length > 0 ? [random.pick(others)] : first === undefined ? [] : [first];
  };
  return {
    current: () => gateway,
    start: async () => {
      for (let attempt = 1; gateway === undefined; attempt += 1) {
        try {
          gateway = await startGateway({ ...options, dataFolder, env });
        } catch (error) {
          if (attempt === 20) throw error;
          note(`a node did not start, and is started again: ${String(error).split('\n').at(-2) ?? error}`);
          await new Promise((wake) => setTimeout(wake, 500));
        }
      }
      const started = gateway;
      void started.ended.then((code) => {
        if (gateway !== started) return;
        gateway = undefined;
        note(`a node ended by itself with ${code}: ${started.output().split('\n').slice(-3).join(' ')}`);
      });
    },
    kill: async () => {
      const killed = gateway;
      if (killed === undefined) return;
      gateway = undefined;
      // Stopped first, so that it starts no other worker.
      send([killed.pid], 'SIGSTOP');
      send(workersOf(killed.pid), 'SIGKILL');
      await killed.kill();
    },
    killPrimary: async () => {
      const killed = gateway;
      if (killed === undefined) return;
      const left = workersOf(killed.pid);
      gateway = undefined;
      await killed.kill();
      await until(
        'workers end without their primary',
        () => left.every((pid) => !existsSync(`/proc/${pid}`)),
        WORKERS_END_MS,
      );
    },
    killWorker: (random) => send(oneWorker(random), 'SIGKILL'),
    stall: (milliseconds) => stallAll(processes(), milliseconds),
    stallWorker: (random, milliseconds) => stallAll(oneWorker(random), milliseconds),
    remove: async () => {
      const last = gateway;
      gateway = undefined;
      await last?.stop();
      await endInstances(dataFolder);
      await rm(dataFolder, { recursive: true, force: true });
    },
  };
}

function workersOf(pid: number): readonly number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return children.split(' ').filter(isWorker).map(Number);
}

/** Other children start the commands of sandboxes. */
function isWorker(pid: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('server.js');
  } catch {
    // It has ended.
    return false;
  }
}

function send(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // It has ended.
    }
  }
}
