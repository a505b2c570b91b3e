import { ADMIT_MS } from './allowance-store';

/** A moment on two clocks: the monotonic clock, which is never set, and the wall clock, which continues while the machine sleeps. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export function rightNow(): Moment {
  return { monotonicMs: performance.now(), wallMs: Date.now() };
}

/**
 * Whether a node may admit calls on a lease that it asked for at that moment. After a suspension, only the wall clock shows how
 * much time has passed. After the wall clock was set back, only the monotonic clock does.
 */
export function mayAdmitSince({ monotonicMs, wallMs }: Moment): boolean {
  return performance.now() - monotonicMs < ADMIT_MS && Date.now() - wallMs < ADMIT_MS;
}
