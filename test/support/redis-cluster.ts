import { Redis } from 'ioredis';
import { freePort } from './free-port';
import { startRedis, type TestRedis } from './redis';
import { until } from './until';

const SLOTS = 16_384;
const PRIMARIES = 3;

export interface TestCluster {
  /** The value for REDIS_URL. */
  readonly url: string;
  readonly primaries: readonly TestRedis[];
  /** The replica of the first primary, which it replaces if that fails. */
  readonly replica: TestRedis;
  slotOf(key: string): Promise<number>;
  /** Moves a slot with all its keys to the next primary. */
  moveSlot(slot: number): Promise<void>;
  /** Begins the same move, but moves only the chosen keys. */
  beginMove(slot: number, isMoved: (key: string) => boolean): Promise<void>;
  /** Returns the keys of a slot that a node holds. */
  keysOf(server: TestRedis, slot: number): Promise<readonly string[]>;
  /** Promotes the replica over the first primary without a vote. The primary then follows it. */
  takeOver(): Promise<void>;
  /** Returns the role to the first primary. */
  giveBack(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts three primaries that share the slots, and a replica of the first, on loopback. */
export async function startCluster(): Promise<TestCluster> {
  // Uses a long timeout, because a busy machine may delay a healthy node.
  const options = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '4000', '--appendonly', 'yes'];
  // Sets the bus ports, because Redis would take ports 10,000 above, which may be in use.
  const buses = await Promise.all(Array.from({ length: PRIMARIES + 1 }, freePort));
  const servers = await Promise.all(buses.map((bus) => startRedis([...options, '--cluster-port', String(bus)])));
  const clients = servers.map(({ url }) => new Redis(url));
  for (const client of clients) client.on('error', () => undefined);
  const ids = await Promise.all(clients.map(async (client) => String(await client.cluster('MYID'))));
  const [first, ...others] = clients;
  const replica = clients[PRIMARIES];
  if (first === undefined || replica === undefined) throw new Error('servers were started');
  for (let each = 0; each < PRIMARIES; each += 1) {
    const [from, to] = [Math.ceil((each * SLOTS) / PRIMARIES), Math.ceil(((each + 1) * SLOTS) / PRIMARIES) - 1];
    await clients[each]?.call('CLUSTER', 'ADDSLOTSRANGE', from, to);
  }
  // Assigns epochs, because nodes take too long to resolve equal ones.
  await Promise.all(clients.map((client, each) => client.call('CLUSTER', 'SET-CONFIG-EPOCH', each + 1)));
  for (const [each, { port }] of servers.entries())
    if (each > 0) await first.call('CLUSTER', 'MEET', '127.0.0.1', port, buses[each] ?? 0);
  const facts = async (client: Redis) => String(await client.call('CLUSTER', 'INFO'));
  const agree = async () =>
    (await Promise.all([first, ...others].map(facts))).every(
      (each) => each.includes('cluster_state:ok') && each.includes(`cluster_known_nodes:${servers.length}`),
    );
  await until('the Cluster has formed', agree, 30_000);
  await replica.call('CLUSTER', 'REPLICATE', ids[0] ?? '');
  await until(
    'the replica is in step',
    async () => /master_link_status:up/.test(await replica.info('replication')),
    30_000,
  );

  const partsOf = (slot: number) => {
    const from = Math.floor((slot * PRIMARIES) / SLOTS);
    const to = (from + 1) % PRIMARIES;
    const [source, target, port] = [clients[from], clients[to], servers[to]?.port ?? 0];
    if (source === undefined || target === undefined) throw new Error(`nobody has slot ${slot}`);
    return { source, target, sourceId: ids[from] ?? '', targetId: ids[to] ?? '', port };
  };
  const keysOf = async (node: Redis | undefined, slot: number) =>
    (await node?.call('CLUSTER', 'GETKEYSINSLOT', slot, 1_000)) as string[];
  const beginMove = async (slot: number, isMoved: (key: string) => boolean) => {
    const { source, target, sourceId, targetId, port } = partsOf(slot);
    await target.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', sourceId);
    await source.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', targetId);
    for (;;) {
      const keys = (await keysOf(source, slot)).filter(isMoved);
      if (keys.length === 0) return;
      await source.call('MIGRATE', '127.0.0.1', port, '', 0, 5_000, 'KEYS', ...keys);
    }
  };

  const takePlace = async (node: Redis, master: Redis) => {
    const isInStep = async () =>
      /master_link_status:up/.test(await node.info('replication')) &&
      (await offsetOf(node)) === (await offsetOf(master));
    await until('the replica has everything', isInStep, 30_000);
    await node.call('CLUSTER', 'FAILOVER', 'TAKEOVER');
    await until('it is followed', async () => /role:slave/.test(await master.info('replication')), 30_000);
  };

  return {
    url: `redis+cluster://${servers.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    primaries: servers.slice(0, PRIMARIES),
    replica: servers[PRIMARIES] as TestRedis,
    slotOf: async (key) => Number(await first.call('CLUSTER', 'KEYSLOT', key)),
    beginMove,
    keysOf: (server, slot) => keysOf(clients[servers.indexOf(server)], slot),
    moveSlot: async (slot) => {
      await beginMove(slot, () => true);
      const { source, target, targetId } = partsOf(slot);
      for (const node of [target, source]) await node.call('CLUSTER', 'SETSLOT', slot, 'NODE', targetId);
    },
    takeOver: () => takePlace(replica, first),
    giveBack: () => takePlace(first, replica),
    stop: async () => {
      for (const client of clients) client.disconnect();
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}

/** Returns the replication offset of this node. */
async function offsetOf(node: Redis): Promise<string | undefined> {
  const info = await node.info('replication');
  return /^slave_repl_offset:(\d+)/m.exec(info)?.[1] ?? /^master_repl_offset:(\d+)/m.exec(info)?.[1];
}
