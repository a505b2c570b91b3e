import type { Logger } from 'pino';
import type { Drainer } from './drainer';
import type { Ledger, ReleaseRequest, SettleRequest } from './ledger';

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
  stop(): Promise<void>;
}

export interface SettlerOptions {
  readonly ledger: Ledger;
  readonly drainer: Pick<Drainer, 'nudge'>;
  readonly log: Logger;
  /** Repetitions at once; above it the lease ends what the ledger does not take. */
  readonly maxPending?: number;
}

/** The caller is told something within this. */
const ANSWER_WITHIN_MS = 240;
/** Shorter than the lease: later the answer would be `expired`. */
const GIVE_UP_AFTER_MS = 110_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

/**
 * Repeating is safe, for the reservation's id makes it so. Not here yet: the file that keeps what is being repeated when
 * this process ends.
 */
export function createSettler({ ledger, drainer, log, maxPending = 10_000 }: SettlerOptions): Settler {
  const underWay = new Set<Promise<unknown>>();
  const sleepers = new Set<() => void>();
  let stopped = false;

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

  /** Asks until there is an outcome other than "not ready"; undefined when it gives up. */
  const insist = async <T extends { readonly outcome: string }>(
    rid: string,
    ask: () => Promise<T>,
  ): Promise<T | undefined> => {
    const giveUpAt = Date.now() + GIVE_UP_AFTER_MS;
    let reason = 'not_ready';
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      try {
        const answer = await ask();
        if (answer.outcome !== 'not_ready') return answer;
      } catch (error) {
        reason = String(error);
      }
      if (stopped || underWay.size > maxPending || Date.now() + pauseMs > giveUpAt) break;
      await pause(pauseMs * (0.5 + Math.random() / 2));
    }
    log.error({ rid, reason }, 'a reservation could not be closed; its hold is given back when the lease ends');
    return undefined;
  };

  const track = <T>(work: Promise<T>): Promise<T> => {
    underWay.add(work);
    return work.finally(() => underWay.delete(work));
  };

  const settleAtLast = async (request: SettleRequest): Promise<bigint> => {
    const answer = await insist(request.rid, () => ledger.settle(request));
    if (answer?.outcome === 'settled') {
      drainer.nudge(request.accountId);
      return answer.chargedE8;
    }
    if (answer !== undefined) {
      const { rid, costE8 } = request;
      log.warn({ rid, costE8: costE8.toString(), outcome: answer.outcome }, 'a cost was not charged');
    }
    return 0n;
  };

  return {
    settle: (request) =>
      within(
        track(settleAtLast(request)).then((chargedE8) => ({ chargedE8, inTime: true })),
        () => ({ chargedE8: request.costE8, inTime: false }),
      ),
    release: (request) => {
      const release = insist(request.rid, () => ledger.release(request)).then((answer) => {
        if (answer !== undefined) drainer.nudge(request.accountId);
        return { inTime: true };
      });
      return within(track(release), () => ({ inTime: false }));
    },
    pending: () => underWay.size,
    stop: async () => {
      stopped = true;
      for (const wake of sleepers) wake();
      await Promise.allSettled(underWay);
    },
  };
}

/** The work's answer, or the other one when it takes too long; the work goes on. */
function within<T>(work: Promise<T>, otherwise: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(otherwise()), ANSWER_WITHIN_MS);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
