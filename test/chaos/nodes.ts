import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type GatewayOptions, startGateway, type TestGateway } from '../support/gateway';
import { endInstances } from '../support/instances';

/** The real server in its own process, with a data folder that outlives it. */
export interface Node {
  /** undefined while it is not there. */
  current(): TestGateway | undefined;
  /** Starts it; tries again while a store it needs is away. */
  start(): Promise<void>;
  kill(): Promise<void>;
  stall(milliseconds: number): Promise<void>;
  remove(): Promise<void>;
}

export async function makeNode(options: GatewayOptions, note: (line: string) => void): Promise<Node> {
  const dataFolder = await mkdtemp(join(tmpdir(), 'tollgate-chaos-node-'));
  let gateway: TestGateway | undefined;
  return {
    current: () => gateway,
    start: async () => {
      for (let attempt = 1; gateway === undefined; attempt += 1) {
        try {
          gateway = await startGateway({ ...options, dataFolder });
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
      gateway = undefined;
      await killed?.kill();
    },
    stall: async (milliseconds) => {
      gateway?.process.kill('SIGSTOP');
      await new Promise((wake) => setTimeout(wake, milliseconds));
      gateway?.process.kill('SIGCONT');
    },
    remove: async () => {
      const last = gateway;
      gateway = undefined;
      await last?.stop();
      await endInstances(dataFolder);
      await rm(dataFolder, { recursive: true, force: true });
    },
  };
}
