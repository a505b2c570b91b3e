import type { Knex } from 'knex';
import type { Logger } from 'pino';
import type { RoutingFacts } from './call';
import { insertUsage } from './ledger/rows';
import type { Arm } from './rollout';
import { SummedRefusals } from './summed-refusals';

/**
 * Usage records of calls that were refused before a reservation: a bounded, best-effort batch; money never depends on it. The first
 * five of a key, code and second are written each, the others as one record that counts them.
 */
export interface RefusedCalls {
  add(record: UsageRecord): void;
  close(): Promise<void>;
}

/**
 * One row of usage_records, metadata only; contract section 6. `cost` is not here: the ledger's entry has it. Nor is the key's
 * name: it is looked up when records are read, so that nothing on a call's path has to know it. Times are
 * RFC 3339 with milliseconds, UTC. What a call does not have is absent.
 */
export interface UsageRecord {
  readonly requestId: string;
  readonly createdAt: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly protocol: string;
  readonly path: string;
  readonly strategy?: string | undefined;
  readonly modelRequested?: string | undefined;
  readonly model?: string | undefined;
  readonly upstream?: string | undefined;
  readonly attempts: number;
  readonly fallback: boolean;
  readonly stream: boolean;
  readonly status: number;
  readonly source: 'provider' | 'platform';
  readonly errorCode?: string | undefined;
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  readonly totalTokens?: number | undefined;
  readonly cacheCreationTokens?: number | undefined;
  readonly cacheReadTokens?: number | undefined;
  readonly billing: 'actual' | 'estimated' | 'released' | 'partial' | 'expired';
  readonly responseTimeMs: number;
  readonly firstTokenMs?: number | undefined;
  readonly configRevision: string;
  /** How many calls it stands for: absent is one. */
  readonly calls?: number;
  /** Why the call went where it went; absent where there was no choice. For operators. */
  readonly routing?: Pick<RoutingFacts, 'candidates' | 'of' | 'attempts'> | undefined;
  /** The rollout that the call was in, with the stage it had then and the call's group. For operators. */
  readonly rollout?: string | undefined;
  readonly rolloutStage?: number | undefined;
  readonly rolloutArm?: Arm | undefined;
}

export interface RefusedCallsOptions {
  readonly database: Knex;
  readonly log: Logger;
  /** Records that wait for the database at most, and groups that are added up; the ones above are dropped and counted. */
  readonly maxWaiting?: number;
  readonly writeEveryMs?: number;
  readonly nowMs?: () => number;
}

export function startRefusedCalls(options: RefusedCallsOptions): RefusedCalls {
  const { database, log, maxWaiting = 1_000, writeEveryMs = 250, nowMs = Date.now } = options;
  const sums = new SummedRefusals(maxWaiting);
  const second = () => Math.floor(nowMs() / 1_000);
  let waiting: UsageRecord[] = [];
  let dropped = 0;
  let writing: Promise<void> = Promise.resolve();

  const write = async (finished: readonly UsageRecord[]) => {
    if (dropped > 0)
      log.warn({ dropped }, 'usage records of refused calls were dropped: the database is too slow for them');
    dropped = 0;
    const batch = [...waiting, ...finished];
    waiting = [];
    try {
      const rows = batch.map((record) => ({ record: JSON.stringify(record), rid: null, costE8: 0n }));
      await insertUsage(database, rows);
    } catch (error) {
      log.warn({ dropped: batch.length, reason: String(error) }, 'usage records of refused calls could not be written');
    }
  };
  /** One batch at a time: while one is written, the next collects within its bound. */
  let isWriting = false;
  const timer = setInterval(() => {
    if (isWriting) return;
    const finished = sums.take(second());
    if (waiting.length === 0 && finished.length === 0 && dropped === 0) return;
    isWriting = true;
    writing = write(finished).finally(() => {
      isWriting = false;
    });
  }, writeEveryMs);
  timer.unref();

  return {
    add: (record) => {
      const becomes = isOneOfManyAlike(record) ? sums.add(record, second()) : 'single';
      if (becomes === 'summed') return;
      if (becomes === 'single' && waiting.length < maxWaiting) waiting.push(record);
      else dropped += 1;
    },
    close: async () => {
      clearInterval(timer);
      await writing;
      await write(sums.take());
    },
  };
}

/** A call whose reserve was not answered may learn its reservation later, and has a record of its own. */
function isOneOfManyAlike({ errorCode }: UsageRecord): boolean {
  return errorCode !== 'LEDGER_UNAVAILABLE';
}
