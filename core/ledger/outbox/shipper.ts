import { isDatabaseUnavailable } from '../../base/database-availability';
import { startLoop } from '../../base/loop';
import type { Stop } from '../../base/resources';
import type { Outbox, Recovery } from '../ledger';
import { ALL_SHARDS, shardOf } from '../shard';
import { findWaiting, type ShipOptions, SteppedBack, shipShards } from './ship';

/** Ships the outboxes to Postgres while the process runs. */
export interface Shipper {
  /** Announces a new entry of this account, so that the shipper ships its shard within about 100 ms. */
  nudge(accountId: string): void;
  /** Ships once more, then stops. Entries that cannot be shipped now stay in Redis; an embedded ledger loses them when its process ends. */
  readonly stop: Stop;
  /** Returns the age of the oldest entry at the last sweep, in ms. The shipper sweeps about once a second, and less often while sweeps find nothing. */
  oldestAgeMs(): number;
}

/** A shipper in its own thread. The gateway's thread announces new entries to it by shard instead of by account. */
interface ShardShipper extends Shipper {
  nudgeShard(shard: number): void;
}

export interface ShipperOptions extends ShipOptions {
  readonly ledger: Outbox & Pick<Recovery, 'shut'>;
  /** How long the shipper collects notices of new entries before it ships; 0 if the caller has already collected them. */
  readonly collectMs?: number;
}

/** How long the shipper collects notices of new entries: long enough for a batch, short enough that a record appears soon after its call. */
export const COLLECT_MS = 75;
const SWEEP_EVERY_MS = 1_000;
/** The longest pause between the shipper's sweeps while they find no entries and no process announces one. It is long because a sweep queries every shard. */
const SWEEP_AT_REST_EVERY_MS = 16_000;
const MAX_PAUSE_MS = 5_000;

export function startShipper(options: ShipperOptions): ShardShipper {
  const { ledger, log, collectMs = COLLECT_MS } = options;
  const nudged = new Set<number>();
  let failures = 0;
  let sweptAt = Number.NEGATIVE_INFINITY;
  let pauseMs = SWEEP_EVERY_MS;
  let oldestAt: number | undefined;

  const sweep = async () => {
    const waiting = await findWaiting(ledger);
    sweptAt = performance.now();
    oldestAt = smallest([...waiting.values()].flatMap((head) => head.map(({ id }) => Number.parseInt(id, 10))));
    for (const shard of waiting.keys()) nudged.add(shard);
  };

  const pass = async () => {
    if (performance.now() - sweptAt > SWEEP_EVERY_MS - collectMs) await sweep();
    const shards = [...nudged];
    nudged.clear();
    pauseMs = shards.length > 0 ? SWEEP_EVERY_MS : Math.min(pauseMs * 2, SWEEP_AT_REST_EVERY_MS);
    try {
      await shipShards(options, shards);
    } catch (error) {
      for (const shard of shards) nudged.add(shard);
      // A shut ledger makes the guardian (the loop that watches the ledger) compare the ledger with Postgres.
      if (error instanceof SteppedBack) await ledger.shut();
      throw error;
    }
  };

  const loop = startLoop(
    async () => {
      await pass();
      if (failures > 0) log.info('the shipper writes entries to Postgres again');
      failures = 0;
    },
    {
      everyMs: () => (failures === 0 ? pauseMs : Math.min(100 * 2 ** failures, MAX_PAUSE_MS)),
      collectMs,
      whenFailed: (error, times) => {
        failures = times;
        if (times === 1 && !isDatabaseUnavailable(error))
          log.error({ reason: String(error) }, 'the shipper cannot write entries to Postgres; they wait in the outbox');
      },
    },
  );

  const nudgeShard = (shard: number) => {
    nudged.add(shard);
    // A notice of a new entry does not shorten the wait before the retry of a failed shipping.
    if (failures === 0) loop.wake();
  };

  return {
    nudge: (accountId) => nudgeShard(shardOf(accountId)),
    nudgeShard,
    stop: async () => {
      await loop.stop();
      await shipShards(options, ALL_SHARDS).catch((error) => {
        log.error(
          { reason: String(error) },
          'the shipper could not write the last entries to Postgres; they wait for the next start',
        );
      });
    },
    oldestAgeMs: () => (oldestAt === undefined ? 0 : Math.max(0, Date.now() - oldestAt)),
  };
}

function smallest(times: readonly number[]): number | undefined {
  return times.length === 0 ? undefined : Math.min(...times);
}
