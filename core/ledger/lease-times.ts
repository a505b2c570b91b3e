/** What goes by the lease of a hold: whatever is to be done before it ends, or not before something else was done, has its share of it. */
export interface LeaseTimes {
  readonly leaseMs: number;
  /** An open call renews its hold this often, and after `retryMs` when that failed: there is time for several. */
  readonly renewEveryMs: number;
  readonly retryMs: number;
  /** How often it is looked for holds whose lease has ended. */
  readonly sweepEveryMs: number;
  /** After the ledger came back none is given back for so long: what closes them is sent first. */
  readonly pauseMs: number;
  /** How long a settle is repeated; later its answer would be `expired`. */
  readonly giveUpAfterMs: number;
  /** How often what waits on disk is looked at, and how old it is when it is sent again: together shorter than the pause. */
  readonly spoolEveryMs: number;
  readonly resendAfterMs: number;
}

export const LEASE_SECONDS = { least: 5, usual: 120, most: 3_600 } as const;

/** A shorter lease makes all of them shorter; a longer one only what bridges it. */
export function leaseTimes(leaseSeconds: number = LEASE_SECONDS.usual): LeaseTimes {
  const leaseMs = leaseSeconds * 1_000;
  const shareOf = (parts: number, atMostMs: number) => Math.min(atMostMs, leaseMs / parts);
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
