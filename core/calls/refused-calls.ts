import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { Counter } from 'prom-client';
import { isDatabaseUnavailable } from '../base/database-availability';
import { startLoop } from '../base/loop';
import { metrics } from '../base/metrics';
import { insertUsage } from '../ledger/outbox/rows';
import type { UsageRecord } from './usage-record';

/**
 * Writes usage records of calls that the gateway refused before a reservation, in bounded batches. Records may be lost, because money never
 * depends on them. The first five calls with the same key, error code and second have one record each. All further calls of that second
 * share one record that counts them.
 */
export interface RefusedCalls {
  add(record: UsageRecord): void;
  close(): Promise<void>;
}

const droppedRecords = new Counter({
  name: 'tollgate_usage_records_dropped_total',
  help: 'Usage records of refused calls that were dropped because the database was unavailable or too slow.',
  registers: [metrics],
});

interface RefusedCallsOptions {
  readonly database: Knex;
  readonly log: Logger;
  /**
   * The most records that wait for the database, and the most groups (key, error code and second) with a sum. Further records are dropped
   * and counted as dropped.
   */
  readonly maxWaiting?: number;
  readonly writeEveryMs?: number;
  readonly nowMs?: () => number;
}

const IDLE_EVERY_MS = 60_000;

export function startRefusedCalls(options: RefusedCallsOptions): RefusedCalls {
  const { database, log, maxWaiting = 1_000, writeEveryMs = 250, nowMs = Date.now } = options;
  const sums = new SummedRefusals(maxWaiting);
  const second = () => Math.floor(nowMs() / 1_000);
  let waiting: UsageRecord[] = [];
  let dropped = 0;
  const drop = (records: number) => {
    dropped += records;
    droppedRecords.inc(records);
  };

  const write = async (finished: readonly UsageRecord[]) => {
    const batch = [...waiting, ...finished];
    waiting = [];
    try {
      const rows = batch.map((record) => ({ record: JSON.stringify(record), rid: null, costE8: 0n }));
      await insertUsage(database, rows);
      if (dropped > 0)
        log.warn(
          { dropped },
          'usage records of refused calls were dropped because the database was unavailable or too slow',
        );
      dropped = 0;
    } catch (error) {
      drop(batch.length);
      if (!isDatabaseUnavailable(error))
        log.warn({ reason: String(error) }, 'usage records of refused calls could not be written to Postgres');
    }
  };
  // The loop writes one batch of records at a time. New records collect meanwhile for the next batch, at most `maxWaiting`.
  const loop = startLoop(
    async () => {
      const finished = sums.take(second());
      if (waiting.length > 0 || finished.length > 0) await write(finished);
    },
    {
      // The loop writes a second's sum of refused calls after that second has ended. For all other records, `add` wakes the loop.
      everyMs: () => (sums.isEmpty ? IDLE_EVERY_MS : writeEveryMs),
      firstAfterMs: writeEveryMs,
      collectMs: writeEveryMs,
      whenFailed: () => undefined,
    },
  );

  return {
    add: (record) => {
      const becomes = isOneOfManyAlike(record) ? sums.add(record, second()) : 'single';
      if (becomes === 'summed') return;
      if (becomes === 'single' && waiting.length < maxWaiting) waiting.push(record);
      else drop(1);
      loop.wake();
    },
    close: async () => {
      await loop.stop();
      await write(sums.take());
    },
  };
}

/**
 * Returns whether the record may be part of a sum. A call refused with LEDGER_UNAVAILABLE may still turn out to have a reservation, so it
 * needs its own record.
 */
function isOneOfManyAlike({ errorCode }: UsageRecord): boolean {
  return errorCode !== 'LEDGER_UNAVAILABLE';
}

/** How many refused calls of one key, error code and second have one record each. One further record counts the rest. */
const RECORDED_SINGLY = 5;

interface Group {
  readonly second: number;
  recorded: number;
  sum: UsageRecord | undefined;
}

/** Sums refused calls by key, error code and second, so that the number of records does not grow with the rate of refusals. */
class SummedRefusals {
  readonly #groups = new Map<string, Group>();

  /** `maxGroups`: the most groups (key, error code and second) at a time. */
  constructor(private readonly maxGroups: number) {}

  /**
   * Adds a record of the current second. Returns `single` if the caller must write the record alone, `summed` if a sum counts it, `dropped`
   * if there was no room for its group.
   */
  add(record: UsageRecord, second: number): 'single' | 'summed' | 'dropped' {
    const id = `${record.keyId} ${record.errorCode ?? ''} ${second}`;
    const group = this.#groups.get(id) ?? { second, recorded: 0, sum: undefined };
    if (group.recorded === 0) {
      if (this.#groups.size >= this.maxGroups) return 'dropped';
      this.#groups.set(id, group);
    }
    if (group.recorded < RECORDED_SINGLY) {
      group.recorded += 1;
      return 'single';
    }
    // The sum of several calls has nothing in which they may differ: no `firstTokenMs`, routing, session, agent, end user or tags.
    const unlike = { firstTokenMs: undefined, routing: undefined, sessionId: undefined, agentId: undefined };
    const demands = (group.sum ?? record).demands === record.demands ? record.demands : undefined;
    const unnamed = { endUserId: undefined, tags: undefined, demands };
    group.sum = { ...(group.sum ?? record), ...unlike, ...unnamed, calls: (group.sum?.calls ?? 0) + 1 };
    return 'summed';
  }

  get isEmpty(): boolean {
    return this.#groups.size === 0;
  }

  /** Returns the sums of refused calls of all seconds before `second` and forgets their groups. Without an argument, returns the sums of all seconds. */
  take(second = Number.POSITIVE_INFINITY): readonly UsageRecord[] {
    const sums: UsageRecord[] = [];
    for (const [id, group] of this.#groups) {
      if (group.second >= second) continue;
      this.#groups.delete(id);
      if (group.sum !== undefined) sums.push(group.sum);
    }
    return sums;
  }
}
