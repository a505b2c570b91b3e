import { ADMIT_MS } from './allowance-store';

/** A moment by both clocks: one that nobody sets, and one that goes on while the machine sleeps. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export function rightNow(): Moment {
  return { monotonicMs: performance.now(), wallMs: Date.now() };
}

/**
 * Whether a node may admit calls on a lease that it asked for at that moment. A process that was suspended finds that the time of day
 * went on; one whose time of day was set back finds that the other clock did.
 */
export function mayAdmitSince({ monotonicMs, wallMs }: Moment): boolean {
  return performance.now() - monotonicMs < ADMIT_MS && Date.now() - wallMs < ADMIT_MS;
}
