import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { forEachConcurrent } from '../base/for-each-concurrent';
import { onFirstFailure, startLoop } from '../base/loop';
import type { Stop } from '../base/resources';
import { type LeaseTimes, leaseTimes } from './lease-times';
import type { Calls, Payer, Recovery } from './ledger';
import { countExpired } from './ledger-metrics';
import { ALL_SHARDS } from './shard';

/** Renews the holds of this process's open calls, and releases the expired holds of processes that have stopped. */
export interface Leases {
  /** How long a hold lasts after its last renewal. */
  readonly leaseMs: number;
  /** Renews the hold of an open call until `untrack` is called for it. */
  track(payer: Payer, rid: string, heldE8: bigint): void;
  untrack(rid: string): void;
  /** Returns how many holds are tracked. */
  count(): number;
  /** Returns the sum of the tracked holds, in 1e-8 USD. */
  heldE8(): bigint;
  /** Resolves when every open call has ended, or after `withinMs` at the latest. */
  none(withinMs: number): Promise<void>;
  readonly stop: Stop;
}

interface LeasesOptions {
  readonly calls: Pick<Calls, 'renew'>;
  readonly ledger: Recovery;
  readonly log: Logger;
  /** Times that replace those of `leaseTimes()`, the times for a lease of the usual length. Absent ones keep their usual value. */
  readonly times?: Partial<LeaseTimes>;
}

const AT_ONCE = 32;
const LOOK_MS = 25;
const DUE_AT_ONCE = 100;

interface Lease {
  readonly payer: Payer;
  readonly heldE8: bigint;
  readonly renewAt: number;
}

/**
 * Starts renewing holds and releasing expired ones. Renewals are spread over time because calls begin at different times. They follow the
 * monotonic clock. After an outage of the ledger, no hold is released for a while: renewals and the settles that wait on disk have
 * priority.
 */
export function startLeases(options: LeasesOptions): Leases {
  const { calls, ledger, log, times } = options;
  const { leaseMs, renewEveryMs, retryMs, sweepEveryMs, pauseMs } = { ...leaseTimes(), ...times };
  /** Leases in the order in which their renewals are due: a renewed lease moves to the end. */
  const leases = new Map<string, Lease>();

  const renew = async (rid: string, lease: Lease) => {
    try {
      const { outcome } = await calls.renew({ ...lease.payer, rid, lifetimeMs: leaseMs });
      if (outcome !== 'not_open') return;
      leases.delete(rid);
    } catch (error) {
      log.warn({ rid, reason: String(error) }, 'the lease of a hold could not be renewed; it is retried');
      if (leases.has(rid)) leases.set(rid, { ...lease, renewAt: performance.now() + Math.min(retryMs, renewEveryMs) });
    }
  };

  const renewDue = async () => {
    const now = performance.now();
    const due = [...takeWhile(leases, ([, { renewAt }]) => renewAt <= now)];
    for (const [rid, lease] of due) {
      leases.delete(rid);
      leases.set(rid, { ...lease, renewAt: now + renewEveryMs });
    }
    await forEachConcurrent(due, AT_ONCE, ([rid, lease]) => (leases.has(rid) ? renew(rid, lease) : Promise.resolve()));
  };

  /** When this process last found the ledger unavailable; undefined if it never has. */
  let missedAt: number | undefined;

  const isBackForLong = async () => {
    const isReady = await ledger.isReady().catch(() => false);
    if (!isReady) missedAt = performance.now();
    if (missedAt !== undefined && performance.now() - missedAt < pauseMs) return false;
    // The age may be negative: if the ledger's clock was set back, the time of the ledger's opening lies in the future.
    return Math.abs(await ledger.openedAgoMs()) >= pauseMs;
  };

  const sweep = async () => {
    if (!(await isBackForLong())) return;
    const due = await ledger.due(ALL_SHARDS, DUE_AT_ONCE);
    let expired = 0;
    await forEachConcurrent(due, AT_ONCE, async ({ rid, ...payer }) => {
      if ((await ledger.expire(payer, rid)).outcome === 'expired') expired += 1;
    });
    countExpired(expired);
    if (expired > 0)
      log.warn({ expired }, 'holds were released because their lease expired: their calls never settled');
  };

  const warn = (error: unknown) =>
    log.warn({ reason: String(error) }, 'expired leases cannot be checked because the ledger is unavailable');
  const loops = [
    startLoop(renewDue, {
      everyMs: Math.min(1_000, renewEveryMs),
      atRestMs: () => (leases.size === 0 ? sweepEveryMs : 0),
      whenFailed: onFirstFailure(warn),
    }),
    startLoop(sweep, { everyMs: sweepEveryMs, atRestMs: sweepEveryMs, whenFailed: onFirstFailure(warn) }),
  ];
  return {
    leaseMs,
    track: (payer, rid, heldE8) => {
      leases.set(rid, { payer, heldE8, renewAt: performance.now() + renewEveryMs });
    },
    untrack: (rid) => {
      leases.delete(rid);
    },
    count: () => leases.size,
    heldE8: () => {
      let sumE8 = 0n;
      for (const { heldE8 } of leases.values()) sumE8 += heldE8;
      return sumE8;
    },
    none: async (withinMs) => {
      const deadline = performance.now() + withinMs;
      while (leases.size > 0 && performance.now() < deadline) await sleep(LOOK_MS);
    },
    stop: async () => {
      await Promise.all(loops.map((loop) => loop.stop()));
    },
  };
}

function* takeWhile<T>(items: Iterable<T>, condition: (item: T) => boolean): Generator<T> {
  for (const item of items) {
    if (!condition(item)) return;
    yield item;
  }
}
