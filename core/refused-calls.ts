import type { Knex } from 'knex';
import type { Logger } from 'pino';
import type { RoutingFacts } from './call';
import { insertUsage } from './ledger/rows';
import type { Arm } from './rollout';

/** Usage records of calls that were refused before a reservation: a bounded, best-effort batch; money never depends on it. */
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
  /** Records that wait for the database at most; the ones above are dropped and counted. */
  readonly maxWaiting?: number;
  readonly writeEveryMs?: number;
}

export function startRefusedCalls(options: RefusedCallsOptions): RefusedCalls {
  const { database, log, maxWaiting = 1_000, writeEveryMs = 250 } = options;
  let waiting: UsageRecord[] = [];
  let dropped = 0;
  let writing: Promise<void> = Promise.resolve();

  const write = async () => {
    if (dropped > 0)
      log.warn({ dropped }, 'usage records of refused calls were dropped: the database is too slow for them');
    dropped = 0;
    const batch = waiting;
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
    if (isWriting || (waiting.length === 0 && dropped === 0)) return;
    isWriting = true;
    writing = write().finally(() => {
      isWriting = false;
    });
  }, writeEveryMs);
  timer.unref();

  return {
    add: (record) => {
      if (waiting.length < maxWaiting) waiting.push(record);
      else dropped += 1;
    },
    close: async () => {
      clearInterval(timer);
      await writing;
      await write();
    },
  };
}
