import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../support/free-port';
import { type GatewayOptions, startGateway, type TestGateway } from '../support/gateway';
import { endInstances } from '../support/instances';
import type { Random } from '../support/random';
import { until } from '../support/until';

/** The real server with its workers, and a data folder that outlives it. */
export interface Node {
  /** Returns the running gateway; undefined while there is none. */
  current(): TestGateway | undefined;
  /** Starts the gateway, with retries while one of its stores is unavailable. */
  start(): Promise<void>;
  /** Sends SIGKILL to all processes of the gateway. */
  kill(): Promise<void>;
  /** Sends SIGKILL to the primary only. Resolves when the workers have exited by themselves. */
  killPrimary(): Promise<void>;
  /** Sends SIGKILL to one worker, which the primary replaces. */
  killWorker(random: Random): void;
  /** Sends SIGSTOP to all processes of the gateway, and SIGCONT after that time. */
  stall(milliseconds: number): Promise<void>;
  stallWorker(random: Random, milliseconds: number): Promise<void>;
  remove(): Promise<void>;
}

/** The time that workers need to finish their work before they exit. */
const WORKERS_END_MS = 180_000;

export async function makeNode(options: GatewayOptions, note: (line: string) => void, workers = 1): Promise<Node> {
  const dataFolder = await mkdtemp(join(tmpdir(), 'tollgate-chaos-node-'));
  // Fixes the port of the admin listener, whichever worker has it.
  const env = { WORKERS: String(workers), ADMIN_PORT: String(await freePort()) };
  let gateway: TestGateway | undefined;
  const stallAll = async (pids: readonly number[], milliseconds: number) => {
    send(pids, 'SIGSTOP');
    await new Promise((wake) => setTimeout(wake, milliseconds));
    send(pids, 'SIGCONT');
  };
  const processes = () => (gateway === undefined ? [] : [gateway.pid, ...workersOf(gateway.pid)]);
  /** Picks a worker to kill. A node with one worker has no separate primary. */
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
      // Stops the primary first, so that it does not replace the worker.
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

/** Returns whether a process is a worker. Other children start the commands of sandboxes. */
function isWorker(pid: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('server.js');
  } catch {
    // The process has exited.
    return false;
  }
}

function send(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // The process has exited.
    }
  }
}
