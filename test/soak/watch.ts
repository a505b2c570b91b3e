import type { Knex } from 'knex';
import { pause } from '../chaos/faults';
import type { Acknowledged } from '../chaos/load';
import { ownLag, vitalsOf } from '../fuzz/rig';
import type { TestGateway } from '../support/gateway';
import { readMetrics } from '../support/metrics';
import { until } from '../support/until';
import type { Sample } from './judge';

const MIB = 1_048_576;
const LOOK_EVERY_MS = 500;
/** A time longer than any call, and longer than the difference between the clocks of gateway and database. */
const EARLIER_MS = 120_000;

/** Watches one process, and the money of answered calls. */
export function startWatch(gateway: TestGateway, database: Knex, { calls }: Acknowledged) {
  const beganMs = Date.now();
  const driftUsd = startDrift(database, calls);
  const lag = startLag(gateway);
  return {
    driftUsd,
    stop: lag.stop,
    sample: async (): Promise<Sample> => {
      const metrics = await until('the metrics answer', () => readMetrics(gateway), 30_000);
      const value = (name: string) => {
        const found = metrics.get(name);
        if (found === undefined) throw new Error(`GET /metrics has no ${name}`);
        return found;
      };
      return {
        hours: (Date.now() - beganMs) / 3_600_000,
        rssMiB: value('process_resident_memory_bytes') / MIB,
        heapMiB: value('nodejs_heap_size_used_bytes') / MIB,
        descriptors: value('process_open_fds'),
        lagMs: lag.takeWorst(),
        outboxSeconds: value('tollgate_ledger_outbox_oldest_seconds'),
        series: metrics.size,
        driftUsd: await driftUsd(),
      };
    },
  };
}

/** Measures often how long the event loop was blocked by its own work. */
function startLag(gateway: TestGateway) {
  let [worstMs, isStopped] = [0, false];
  const look = async () => {
    let last = await vitalsOf(gateway);
    while (!isStopped) {
      await pause(LOOK_EVERY_MS);
      const now = await vitalsOf(gateway);
      worstMs = Math.max(worstMs, ownLag(last, now));
      last = now;
    }
  };
  // Another check reports a process that has ended.
  const looking = look().catch(() => undefined);
  return {
    takeWorst: () => {
      const taken = worstMs;
      worstMs = 0;
      return taken;
    },
    stop: () => {
      isStopped = true;
      return looking;
    },
  };
}

/** Returns the difference between stated and charged cost, for calls that were answered before the previous request. */
function startDrift(database: Knex, calls: ReadonlyMap<string, bigint>) {
  const open = new Map<string, { readonly costE8: bigint; readonly seenMs: number }>();
  let taken = 0;
  return async (): Promise<number> => {
    const old = [...open];
    for (const [id, costE8] of [...calls].slice(taken)) open.set(id, { costE8, seenMs: Date.now() });
    taken = calls.size;
    const since = new Date(Math.min(Date.now(), ...old.map(([, { seenMs }]) => seenMs)) - EARLIER_MS);
    // Retries after a connection was cut.
    const { rows } = await until('the database answers', () =>
      database.raw<{ rows: { id: string; cost: string }[] }>(RECORDED, [since, [...open.keys()]]),
    );
    const charged = new Map(rows.map(({ id, cost }) => [id, BigInt(cost)]));
    for (const [id, { costE8 }] of open) if (charged.get(id) === costE8) open.delete(id);
    const driftE8 = old.reduce((sum, [id, { costE8 }]) => sum + costE8 - (charged.get(id) ?? 0n), 0n);
    return Number(driftE8) / 1e8;
  };
}

const RECORDED = `
  SELECT request_id AS id, cost_e8::text AS cost FROM usage_records WHERE created_at > ? AND request_id = ANY(?)`;
