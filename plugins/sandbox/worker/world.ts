import type { Ledger } from '../../../core/ledger/ledger';
import type { Charge } from '../books/books';
import type { Places } from '../books/places';
import type { Aggregate, Change } from '../life/aggregate';
import type { Seen, SupplierVerb } from '../life/plan';
import type { Period, Sandbox } from '../life/sandbox';
import type { Timings } from '../life/settings';
import type { SupplierDriver, Tags } from '../suppliers/supplier';

/** One supplier call and its outcome. */
export interface SupplierCall {
  readonly sandboxId: string;
  readonly supplier: string;
  readonly verb: SupplierVerb;
  readonly outcome: 'OK' | 'REJECTED' | 'NOT_SENT' | 'AMBIGUOUS';
  readonly message: string | null;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
}

/** The dependencies of a step. Tests replace the clock, the supplier and the books. */
export interface World {
  readonly ledger: Pick<Ledger, 'reserve' | 'settle' | 'release' | 'renew' | 'roll'>;
  readonly timings: Timings;
  now(): number;
  driverOf(sandbox: Sandbox): SupplierDriver;
  tagsOf(sandbox: Sandbox): Tags;
  readonly places: Pick<Places, 'homeOf' | 'reachOf'>;
  /** Writes a change. Returns the current aggregate, or undefined if the claim is lost. */
  commit(aggregate: Aggregate, change: Change): Promise<Aggregate | undefined>;
  noteCall(call: SupplierCall): void;
  chargeOf(period: Period): Promise<Charge | undefined>;
  /** Returns true if so many instances of a supplier are missing at once that none is believed to be gone. */
  areTooManyGone(supplier: string): Promise<boolean>;
}

export interface Step {
  readonly aggregate: Aggregate;
  readonly seen: Seen;
}

export function stepAfter(aggregate: Aggregate | undefined, seen: Seen): Step | undefined {
  return aggregate === undefined ? undefined : { aggregate, seen };
}
