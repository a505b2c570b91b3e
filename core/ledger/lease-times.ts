/** The times that depend on the lease of a hold. Each task that must finish before the lease ends gets a share of the lease. */
export interface LeaseTimes {
  readonly leaseMs: number;
  /** How often an open call renews its hold. A failed renewal is repeated after `retryMs`, several times before the lease ends. */
  readonly renewEveryMs: number;
  readonly retryMs: number;
  /** How often the process checks for holds whose lease has ended. */
  readonly sweepEveryMs: number;
  /** How long after an outage of the ledger no hold is released, because settles that wait on disk have priority. */
  readonly pauseMs: number;
  /** How long a settle is retried. After that, the ledger would answer `expired`. */
  readonly giveUpAfterMs: number;
  /** How often the spool checks the settles that wait on disk, and at what age it sends one again. The sum of both times is shorter than `pauseMs`. */
  readonly spoolEveryMs: number;
  readonly resendAfterMs: number;
}

export const LEASE_SECONDS = { least: 5, usual: 120, most: 3_600 } as const;

/**
 * Returns the times for a lease of this length. A lease shorter than the usual one shortens all times. A longer one lengthens only
 * `renewEveryMs` and `giveUpAfterMs`.
 */
export function leaseTimes(leaseSeconds: number = LEASE_SECONDS.usual): LeaseTimes {
  const leaseMs = leaseSeconds * 1_000;
  const shareOf = (parts: number, maxMs: number) => Math.min(maxMs, leaseMs / parts);
  return {
    leaseMs,
    renewEveryMs: leaseMs / 3,
    retryMs: shareOf(12, 10_000),
    sweepEveryMs: shareOf(24, 5_000),
    pauseMs: shareOf(2, 60_000),
    giveUpAfterMs: (leaseMs * 11) / 12,
    spoolEveryMs: shareOf(24, 5_000),
    resendAfterMs: shareOf(12, 10_000),
  };
}
