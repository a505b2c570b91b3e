/** Reserve and settle alone, or a bare SET, as often as they go in SECONDS with CONCURRENCY at once; told by a message of the parent. */
import { Redis } from 'ioredis';
import { endWithParent } from './announce.mjs';
import { openLedger, reserve } from './ledger.mjs';

const CONCURRENCY = Number(process.env.CONCURRENCY);
const ledger = await openLedger();
const redis = new Redis(process.env.REDIS_URL, { enableAutoPipelining: true });
const value = 'x'.repeat(400);
let counter = 0;
const work = {
  ledger: async () => (await reserve(ledger, 'bench-model'))(undefined),
  set: () => redis.set(`bench:${counter++ % 10_000}`, value),
};

process.on('message', async ({ what, seconds }) => {
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
  await Promise.all(Array.from({ length: CONCURRENCY }, worker)).catch((error) =>
    process.send({ ran: { failure: String(error) } }),
  );
  const elapsed = (performance.now() - started) / 1_000;
  const sorted = Float64Array.from(lateMs).sort();
  const at = (share) => sorted[Math.ceil(sorted.length * share) - 1];
  process.send({ ran: { count: sorted.length, perSecond: sorted.length / elapsed, p50Ms: at(0.5), p99Ms: at(0.99) } });
});
endWithParent();
process.send({ ready: true });
