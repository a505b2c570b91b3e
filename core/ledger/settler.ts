import type { Logger } from 'pino';
import type { Stop } from '../resources';
import { leaseTimes } from './lease-times';
import type { Ledger, ReleaseRequest, SettleRequest } from './ledger';
import { measuredSettle } from './ledger-metrics';
import type { Shipper } from './outbox/shipper';
import type { Spool } from './spool/spool';

export interface Settled {
  /** What was charged; while the ledger is late, the cost that will be. */
  readonly chargedE8: bigint;
  /** False when the ledger has not answered yet: the settle goes on by itself. */
  readonly inTime: boolean;
}

/** Closes reservations so that no caller waits long for it and no charge is given up early. */
export interface Settler {
  settle(request: SettleRequest): Promise<Settled>;
  release(request: ReleaseRequest): Promise<{ readonly inTime: boolean }>;
  /** How many are under way or being repeated. */
  pending(): number;
  /** No repetition starts after this; answers when those under way have ended. */
  readonly stop: Stop;
}

export interface SettlerOptions {
  readonly ledger: Ledger;
  readonly shipper: Pick<Shipper, 'nudge'>;
  readonly log: Logger;
  /** Keeps what is sent; absent in tests that are about something else. */
  readonly spool?: Pick<Spool, 'keep'>;
  /** Repetitions at once; above it the lease ends what the ledger does not take. */
  readonly maxPending?: number;
  readonly giveUpAfterMs?: number;
}

/** The caller is told something within this. */
const ANSWER_WITHIN_MS = 240;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

type Answer = { readonly outcome: string };
/** Why there is no outcome yet. */
type Failure = { readonly outcome: 'none'; readonly why: string };

/** Repeating is safe, for the reservation's id makes it so. What this gives up at last, the spool goes on with. */
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

  /** Asks once; answers why there is no outcome when there is none. */
  const attempt = <T extends Answer>(ask: () => Promise<T>): Promise<T | Failure> =>
    ask().then(
      (answer) =>
        answer.outcome === 'not_ready'
          ? { outcome: 'none', why: 'the ledger is being restored from Postgres' }
          : answer,
      (error: unknown) => ({ outcome: 'none', why: String(error) }),
    );

  /** Asks until there is an outcome; undefined when it gives up. */
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

  /** The work's answer, or the other one when it takes too long; the work goes on. */
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
      // The caller is told less than the cost: a ledger that is lost now must not be told more.
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
