import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { Counter } from 'prom-client';
import { isDatabaseUnavailable } from '../base/database-availability';
import { startLoop } from '../base/loop';
import { metrics } from '../base/metrics';
import { insertUsage } from '../ledger/outbox/rows';
import type { UsageRecord } from './usage-record';

/**
 * Writes usage records of calls that were refused before a reservation, in bounded, best-effort batches; money never depends on
 * them. The first five of a key, code and second are written each, the others as one record that counts them.
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
  /** The most records that wait for the database, and the most groups that are added up; further ones are dropped and counted. */
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
  // The loop writes one batch at a time. The next batch collects meanwhile, within its bound.
  const loop = startLoop(
    async () => {
      const finished = sums.take(second());
      if (waiting.length > 0 || finished.length > 0) await write(finished);
    },
    {
      // A sum is written after its second has ended. `add` wakes the loop for all other records.
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

/** False for a call whose reserve got no answer. It may learn its reservation later, so it has a record of its own. */
function isOneOfManyAlike({ errorCode }: UsageRecord): boolean {
  return errorCode !== 'LEDGER_UNAVAILABLE';
}

/** How many refused calls of one key, code and second have a record each. The next record counts all the others. */
const RECORDED_SINGLY = 5;

interface Group {
  readonly second: number;
  recorded: number;
  sum: UsageRecord | undefined;
}

/** Adds up refused calls by key, code and second, so that the number of records does not grow with their rate. */
class SummedRefusals {
  readonly #groups = new Map<string, Group>();

  /** `maxGroups`: the most groups at a time. */
  constructor(private readonly maxGroups: number) {}

  /**
   * Adds a record of this second. Returns whether to write it as it is, whether the sum of its group counts it, or whether there
   * is no room for its group.
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
    // The sum has no time to a first token, which would count several times, and no session, because the calls may belong to several.
    const unlike = { firstTokenMs: undefined, sessionId: undefined, agentId: undefined };
    group.sum = { ...(group.sum ?? record), ...unlike, calls: (group.sum?.calls ?? 0) + 1 };
    return 'summed';
  }

  get isEmpty(): boolean {
    return this.#groups.size === 0;
  }

  /** Takes the sums of the seconds before this one and forgets their groups; without an argument takes all. */
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
