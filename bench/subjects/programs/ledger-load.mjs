/** Runs reserve and settle, or a bare SET, as often as possible in SECONDS with CONCURRENCY at once, on a message of the parent. */
import { Redis } from 'ioredis';
import { endWithParent } from './announce.mjs';
import { openAccounts, openLedger, reserve } from './ledger.mjs';

const CONCURRENCY = Number(process.env.CONCURRENCY);
const redis = new Redis(process.env.REDIS_URL, { enableAutoPipelining: true });
const waitReplicas = Number(process.env.WAIT_REPLICAS ?? 0);
if (waitReplicas > 0) await redis.call('WAIT', waitReplicas, 20_000);
/** Uses a long timeout: a slow disk delays a call, which shows in the result, but must not fail it. */
const ledger = await openLedger({ patienceMs: 10_000, waitReplicas });
const accounts = await openAccounts(ledger, Number(process.env.ACCOUNTS));
const value = 'x'.repeat(400);
let counter = 0;
const work = {
  ledger: async () => (await reserve(ledger, 'bench-model'))(undefined),
  accounts: async () => (await reserve(ledger, 'bench-model', accounts[counter++ % accounts.length]))(undefined),
  set: () => redis.set(`bench:${counter++ % 10_000}`, value),
};

const usedMemory = async () => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))[1]);

/** Returns the bytes of a reservation while it is open, when it is closed and its entry waits, and when its entry is a row. */
async function weigh(count) {
  await drain();
  const before = await usedMemory();
  const settles = [];
  for (let each = 0; each < count; each += 1) settles.push(await reserve(ledger, 'bench-model', accounts[each]));
  const open = await usedMemory();
  for (const settle of settles) await settle(undefined);
  const waiting = await usedMemory();
  await drain();
  const closed = await usedMemory();
  const bytes = (then) => Math.round((then - before) / count);
  return { openBytes: bytes(open), waitingBytes: bytes(waiting), closedBytes: bytes(closed) };
}

async function drain() {
  const shards = Array.from({ length: 256 }, (_, shard) => shard);
  for (let left = await ledger.readOutbox(shards, 200); left.size > 0; left = await ledger.readOutbox(shards, 200))
    for (const [shard, entries] of left) await ledger.trimOutbox(shard, entries);
}

process.on('message', async ({ what, seconds, fsync, count }) => {
  if (count !== undefined) return process.send({ weighed: await weigh(count) });
  await redis.config('SET', 'appendfsync', fsync);
  // Writes once before the measurement, because the first sync includes earlier writes.
  await redis.set('bench:begin', fsync);
  const started = performance.now();
  const until = started + seconds * 1_000;
  const lateMs = [];
  const worker = async () => {
    for (let now = performance.now(); now < until; ) {
      await work[what]();
      const then = performance.now();
      lateMs.push(then - now);
      now = then;
    }
  };
  const failure = await Promise.all(Array.from({ length: CONCURRENCY }, worker)).then(() => undefined, String);
  if (failure !== undefined) return process.send({ ran: { failure } });
  const elapsed = (performance.now() - started) / 1_000;
  const sorted = Float64Array.from(lateMs).sort();
  const at = (share) => sorted[Math.ceil(sorted.length * share) - 1];
  const ran = { count: sorted.length, perSecond: sorted.length / elapsed, p50Ms: at(0.5), p99Ms: at(0.99) };
  process.send({ ran: { ...ran, mostMs: sorted.at(-1) } });
});
endWithParent();
process.send({ ready: true });
