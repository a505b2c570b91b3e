import type { Logger } from 'pino';
import type { Stop } from '../resources';
import { leaseTimes } from './lease-times';
import type { Calls, ReleaseRequest, SettleRequest } from './ledger';
import { measuredSettle } from './ledger-metrics';
import type { Shipper } from './outbox/shipper';
import type { Spool } from './spool/spool';

export interface Settled {
  /** The charged amount or, while the ledger is late, the cost that it will charge. */
  readonly chargedE8: bigint;
  /** False if the ledger has not answered yet. The settle then continues by itself. */
  readonly inTime: boolean;
}

/** Closes reservations: no caller waits long for it, and no charge is given up early. */
export interface Settler {
  settle(request: SettleRequest): Promise<Settled>;
  release(request: ReleaseRequest): Promise<{ readonly inTime: boolean }>;
  /** Returns how many operations are under way or being repeated. */
  pending(): number;
  /** Starts no more repetitions, and resolves when the operations under way have ended. */
  readonly stop: Stop;
}

interface SettlerOptions {
  readonly ledger: Pick<Calls, 'settle' | 'release'>;
  readonly shipper: Pick<Shipper, 'nudge'>;
  readonly log: Logger;
  /** Keeps on disk what is sent; absent in tests of something else. */
  readonly spool?: Pick<Spool, 'keep'>;
  /** How many operations are repeated at once. Beyond that, a hold that is not closed ends with its lease. */
  readonly maxPending?: number;
  readonly giveUpAfterMs?: number;
}

/** The caller gets an answer within this time. */
const ANSWER_WITHIN_MS = 240;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

type Answer = { readonly outcome: string };
/** The reason why there is no outcome yet. */
type Failure = { readonly outcome: 'none'; readonly why: string };

/** Creates a settler. It may repeat an operation, because the reservation's id makes that safe. The spool retries what the settler gives up. */
export function createSettler(options: SettlerOptions): Settler {
  const { ledger, shipper, log, spool, maxPending = 10_000, giveUpAfterMs = leaseTimes().giveUpAfterMs } = options;
  const underWay = new Set<Promise<unknown>>();
  const sleepers = new Set<() => void>();
  let stopped = false;
  let repeating = 0;

  const pause = (ms: number) =>
    new Promise<void>((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        sleepers.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, ms);
      sleepers.add(wake);
    });

  /** Asks once. Returns the outcome, or the reason why there is none. */
  const attempt = <T extends Answer>(ask: () => Promise<T>): Promise<T | Failure> =>
    ask().then(
      (answer) =>
        answer.outcome === 'not_ready'
          ? { outcome: 'none', why: 'the ledger is being restored from Postgres' }
          : answer,
      (error: unknown) => ({ outcome: 'none', why: String(error) }),
    );

  /** Asks until there is an outcome. Returns undefined if it gives up. */
  const insist = async <T extends Answer>(rid: string, ask: () => Promise<T>): Promise<T | undefined> => {
    let answer = await attempt(ask);
    if (answer.outcome === 'none' && repeating < maxPending) {
      repeating += 1;
      answer = await repeat(ask, answer);
      repeating -= 1;
    }
    if (!('why' in answer)) return answer;
    log.error(
      { rid, reason: answer.why },
      'a reservation could not be settled; its hold is released when its lease expires',
    );
    return undefined;
  };

  const repeat = async <T extends Answer>(ask: () => Promise<T>, first: T | Failure): Promise<T | Failure> => {
    const giveUpAt = performance.now() + giveUpAfterMs;
    let answer = first;
    let pauseMs = FIRST_PAUSE_MS;
    while (answer.outcome === 'none' && !stopped && performance.now() + pauseMs < giveUpAt) {
      await pause(pauseMs * (0.5 + Math.random() / 2));
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
      answer = await attempt(ask);
    }
    return answer;
  };

  /** Resolves with the work's answer, or with `otherwise()` if the work takes too long. The work continues. */
  const within = <T>(work: Promise<T>, otherwise: () => T): Promise<T> =>
    new Promise((resolve, reject) => {
      underWay.add(work);
      const timer = setTimeout(() => resolve(otherwise()), ANSWER_WITHIN_MS);
      const end = () => {
        underWay.delete(work);
        clearTimeout(timer);
      };
      work.then(
        (answer) => {
          end();
          resolve(answer);
        },
        (error: unknown) => {
          end();
          reject(error);
        },
      );
    });

  const settleAtLast = async (request: SettleRequest): Promise<Settled> => {
    await spool?.keep({ kind: 'settle', ...request });
    const answer = await insist(request.rid, () => measuredSettle(ledger, request));
    if (answer?.outcome === 'settled') {
      // The caller learns that less than the cost was charged. If the ledger loses this settle, it must not charge more later.
      if (answer.shortfallE8 > 0n) void spool?.keep({ ...request, kind: 'settle', costE8: answer.chargedE8 });
      shipper.nudge(request.accountId);
      return { chargedE8: answer.chargedE8, inTime: true };
    }
    if (answer?.outcome === 'unknown_reservation' && spool !== undefined)
      return { chargedE8: request.costE8, inTime: true };
    if (answer !== undefined) {
      const { rid, costE8 } = request;
      log.warn({ rid, costE8: costE8.toString(), outcome: answer.outcome }, 'the cost of a call was not fully charged');
    }
    return { chargedE8: 0n, inTime: true };
  };

  const releaseAtLast = async (request: ReleaseRequest): Promise<{ inTime: boolean }> => {
    await spool?.keep({ kind: 'release', costE8: 0n, ...request });
    const answer = await insist(request.rid, () => ledger.release(request));
    if (answer !== undefined) shipper.nudge(request.accountId);
    return { inTime: true };
  };

  return {
    settle: (request) => within(settleAtLast(request), () => ({ chargedE8: request.costE8, inTime: false })),
    release: (request) => within(releaseAtLast(request), () => ({ inTime: false })),
    pending: () => underWay.size,
    stop: async () => {
      stopped = true;
      for (const wake of sleepers) wake();
      await Promise.allSettled(underWay);
    },
  };
}
