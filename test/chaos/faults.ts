import { Redis } from 'ioredis';
import { Client } from 'pg';
import type { Random } from '../support/random';
import type { Receiver } from './alerts';
import type { Node } from './nodes';
import type { ClockedServer, Server } from './servers';

export interface World {
  readonly nodes: readonly Node[];
  readonly redis: ClockedServer;
  readonly postgres: Server;
  /** Receives webhooks, where accounts have some. */
  readonly receiver?: Receiver;
  readonly random: Random;
}

/** The faults by name, as in the table. Each one leaves everything running again. */
export const FAULTS: Readonly<Record<string, (world: World) => Promise<void>>> = {
  'node: kill -9': async ({ nodes, random }) => {
    const node = random.pick(nodes);
    await node.kill();
    await node.start();
  },
  'node: stopped 1-6 s': ({ nodes, random }) => random.pick(nodes).stall(1_000 + random.below(5_000)),
  'primary: kill -9, its workers end': async ({ nodes, random }) => {
    const node = random.pick(nodes);
    await node.killPrimary();
    await node.start();
  },
  'worker: kill -9': async ({ nodes, random }) => random.pick(nodes).killWorker(random),
  'worker: stopped 1-6 s': ({ nodes, random }) => random.pick(nodes).stallWorker(random, 1_000 + random.below(5_000)),
  'Redis: kill -9': async ({ redis, random }) => {
    await redis.kill();
    await pause(random.below(1_000));
    await redis.start();
  },
  'Redis: stopped 0.3-3 s': ({ redis, random }) => redis.stall(300 + random.below(2_700)),
  'Redis: connections cut': ({ redis }) => atRedis(redis, (client) => client.client('KILL', 'SKIPME', 'yes')),
  'Redis: FLUSHALL': ({ redis }) => atRedis(redis, (client) => client.flushall()),
  'Redis: clock +1 h and back': async ({ redis }) => {
    await redis.setClock?.(3_600);
    await pause(2_000);
    await redis.setClock?.(0);
  },
  'Redis: clock -1 h and back': async ({ redis }) => {
    await redis.setClock?.(-3_600);
    await pause(2_000);
    await redis.setClock?.(0);
  },
  'Postgres: crash': async ({ postgres, random }) => {
    await postgres.kill();
    await pause(random.below(3_000));
    await postgres.start();
  },
  'Postgres: connections cut': async ({ postgres }) => {
    const client = new Client({ connectionString: postgres.url });
    await client.connect();
    await client.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()');
    await client.end();
  },
  'Postgres: stopped 1-5 s': ({ postgres, random }) => postgres.stall(1_000 + random.below(4_000)),
  'receiver of webhooks: kill': async ({ receiver, random }) => {
    await receiver?.kill();
    await pause(random.below(3_000));
    await receiver?.start();
  },
  'Redis and a node: kill -9 at once': async ({ redis, nodes, random }) => {
    const node = random.pick(nodes);
    await Promise.all([redis.kill(), node.kill()]);
    await redis.start();
    await node.start();
  },
};

async function atRedis({ url }: Server, work: (client: Redis) => Promise<unknown>): Promise<void> {
  const client = new Redis(url, { maxRetriesPerRequest: 1 });
  client.on('error', () => undefined);
  await work(client);
  client.disconnect();
}

export function pause(milliseconds: number): Promise<void> {
  return new Promise((wake) => setTimeout(wake, milliseconds));
}
