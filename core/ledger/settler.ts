import { setImmediate } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { MaybeLater } from '../base/maybe-later';
import type { Stop } from '../base/resources';
import { leaseTimes } from './lease-times';
import type { Calls, ReleaseRequest, SettleOutcome, SettleRequest } from './ledger';
import { measuredSettle } from './ledger-metrics';
import type { Shipper } from './outbox/shipper';
import type { Spool } from './spool/spool';
import type { Closing } from './spool/spool-file';

interface Settled {
  /** The charged amount. Until the ledger answers, it is the cost that the ledger was asked to charge. */
  readonly chargedE8: bigint;
  /** Whether the ledger answered in time. If not, the settler repeats the settle in the background. */
  readonly inTime: boolean;
}

/** Closes reservations. It answers callers quickly, and retries charges that the ledger has not confirmed. */
export interface Settler {
  settle(request: SettleRequest): Promise<Settled>;
  /** Settles, and resolves with the result of `read` for the outcome. */
  settle<T>(request: SettleRequest, read: (settled: Settled) => T): Promise<T>;
  release(request: ReleaseRequest): Promise<{ readonly inTime: boolean }>;
  /** Returns how many operations are running or being retried. */
  pending(): number;
  /** Starts no more retries, and resolves when the running operations have ended. */
  readonly stop: Stop;
}

interface SettlerOptions {
  readonly ledger: Pick<Calls, 'settle' | 'release'>;
  readonly shipper: Pick<Shipper, 'nudge'>;
  readonly log: Logger;
  /** Keeps on disk what the settler sends to the ledger; absent in tests that do not need it. */
  readonly spool?: Pick<Spool, 'keep'>;
  /** How many operations are retried at once. Beyond that, a hold that cannot be closed expires with its lease. */
  readonly maxPending?: number;
  readonly giveUpAfterMs?: number;
}

const KEPT = Promise.resolve();

/** The longest time that a caller waits for the ledger, in ms. */
const ANSWER_WITHIN_MS = 240;
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;

type Answer = { readonly outcome: string };
/** The result if the ledger gave no outcome; `why` is the reason. */
type Failure = { readonly outcome: 'none'; readonly why: string };

/** Creates a settler. It may repeat an operation, because the reservation's id makes that safe. The spool retries what the settler gives up. */
export function createSettler(options: SettlerOptions): Settler {
  const { ledger, shipper, log, spool, maxPending = 10_000, giveUpAfterMs = leaseTimes().giveUpAfterMs } = options;
  const underWay = new Set<Promise<unknown>>();
  const sleepers = new Set<() => void>();
  let stopped = false;
  let repeating = 0;
  /** How many settles and releases wait until the spool has written them to the disk. */
  let keeping = 0;

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

  /** Calls the ledger once. Returns the outcome, or the reason why there is none. */
  const attempt = <T extends Answer>(ask: () => MaybeLater<T>): MaybeLater<T | Failure> => {
    try {
      const answer = ask();
      return answer instanceof Promise ? answer.then(unlessNotReady, failureOf) : unlessNotReady(answer);
    } catch (error) {
      return failureOf(error);
    }
  };

  /** Calls the ledger until there is an outcome. Returns undefined if it gives up. */
  const insist = async <T extends Answer>(
    rid: string,
    ask: () => MaybeLater<T>,
    first: MaybeLater<T | Failure>,
  ): Promise<T | undefined> => {
    let answer = await first;
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

  const repeat = async <T extends Answer>(ask: () => MaybeLater<T>, first: T | Failure): Promise<T | Failure> => {
    const giveUpAt = performance.now() + giveUpAfterMs;
    let answer = first;
    let pauseMs = FIRST_PAUSE_MS;
    while (answer.outcome === 'none' && !stopped && performance.now() + pauseMs < giveUpAt) {
      await pause(pauseMs * (0.5 + Math.random() / 2));
      pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
      answer = await attempt(ask);
    }
    return answer;
  };

  /** Resolves with the result of `work`, or with `fallback()` if the work takes longer than ANSWER_WITHIN_MS. The work continues. */
  const within = <T>(work: Promise<T>, fallback: () => T): Promise<T> =>
    new Promise((resolve, reject) => {
      underWay.add(work);
      const timer = setTimeout(() => resolve(fallback()), ANSWER_WITHIN_MS);
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

  /**
   * Writes a settle or release to the disk, then sends it to the ledger. If the ledger answers at once, `read` gets the outcome at once.
   * Otherwise the settler retries until there is an outcome; if that takes too long, `read` gets `late()`.
   */
  const close = <T extends Answer, S, R>(
    line: Closing,
    ask: () => MaybeLater<T>,
    resultOf: (answer: T | undefined) => S,
    late: () => S,
    read: (result: S) => R,
  ): Promise<R> => {
    keeping += 1;
    return (spool?.keep(line) ?? KEPT).then(() => {
      keeping -= 1;
      const first = attempt(ask);
      if (!(first instanceof Promise) && !('why' in first)) return read(resultOf(first));
      return within(insist(line.rid, ask, first).then(resultOf), late).then(read);
    });
  };

  const settled = (request: SettleRequest, answer: SettleOutcome | undefined): Settled => {
    const { rid, costE8 } = request;
    if (answer?.outcome === 'settled') {
      // The caller gets the reduced charge. The spool also keeps that charge instead of the cost. If the ledger loses this settle, the repetition
      // then does not charge more.
      if (answer.shortfallE8 > 0n) void spool?.keep({ ...closingOf('settle', request), costE8: answer.chargedE8 });
      shipper.nudge(request.accountId);
      return { chargedE8: answer.chargedE8, inTime: true };
    }
    if (answer?.outcome === 'unknown_reservation' && spool !== undefined) return { chargedE8: costE8, inTime: true };
    if (answer !== undefined)
      log.warn({ rid, costE8: costE8.toString(), outcome: answer.outcome }, 'the cost of a call was not fully charged');
    return { chargedE8: 0n, inTime: true };
  };

  return {
    settle: <T = Settled>(request: SettleRequest, read: (settled: Settled) => T = (given) => given as T) =>
      close(
        closingOf('settle', request),
        () => measuredSettle(ledger, request),
        (answer) => settled(request, answer),
        () => ({ chargedE8: request.costE8, inTime: false }),
        read,
      ),
    release: (request) =>
      close(
        closingOf('release', request),
        () => ledger.release(request),
        (answer) => {
          if (answer !== undefined) shipper.nudge(request.accountId);
          return true;
        },
        () => false,
        (inTime) => ({ inTime }),
      ),
    pending: () => underWay.size + keeping,
    stop: async () => {
      stopped = true;
      for (const wake of sleepers) wake();
      while (keeping > 0) await setImmediate();
      await Promise.allSettled(underWay);
    },
  };
}

function closingOf(
  kind: Closing['kind'],
  { accountId, keyId, rid, record, costE8 = 0n }: ReleaseRequest & Partial<Pick<SettleRequest, 'costE8'>>,
): Closing {
  return { kind, accountId, keyId, rid, costE8, record };
}

function unlessNotReady<T extends Answer>(answer: T): T | Failure {
  return answer.outcome === 'not_ready' ? failureOf('the ledger is being restored from Postgres') : answer;
}

function failureOf(why: unknown): Failure {
  return { outcome: 'none', why: String(why) };
}
