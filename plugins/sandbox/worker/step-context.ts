import type { Ledger } from '../../../core/ledger/ledger';
import type { Aggregate, Change } from '../lifecycle/aggregate';
import type { Seen, SupplierVerb } from '../lifecycle/plan';
import type { Period, Sandbox } from '../lifecycle/sandbox';
import type { Timings } from '../lifecycle/settings';
import type { Places } from '../store/places';
import type { PeriodCharge } from '../store/sandbox-store';
import type { SupplierDriver, Tags } from '../suppliers/supplier';

/** One call to a supplier of sandboxes, and its outcome. */
export interface SupplierCall {
  readonly sandboxId: string;
  readonly supplier: string;
  readonly verb: SupplierVerb;
  readonly outcome: 'OK' | 'REJECTED' | 'NOT_SENT' | 'AMBIGUOUS';
  readonly message: string | null;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
}

/** The dependencies of one step of a sandbox's reconciliation. Tests replace the clock, the supplier and the ledger. */
export interface StepContext {
  readonly ledger: Pick<Ledger, 'reserve' | 'settle' | 'release' | 'renew' | 'roll'>;
  readonly timings: Timings;
  now(): number;
  driverOf(sandbox: Sandbox): SupplierDriver;
  tagsOf(sandbox: Sandbox): Tags;
  readonly places: Pick<Places, 'homeOf' | 'reachOf'>;
  /** Writes a change to Postgres. Returns the sandbox with its current records; undefined if the worker has lost its claim on the sandbox. */
  commit(aggregate: Aggregate, change: Change): Promise<Aggregate | undefined>;
  noteCall(call: SupplierCall): void;
  chargeOf(period: Period): Promise<PeriodCharge | undefined>;
  /** Returns true if so many instances of a supplier are missing at once that the gateway trusts none of these reports. */
  areTooManyGone(supplier: string): Promise<boolean>;
}

export interface StepResult {
  readonly aggregate: Aggregate;
  readonly seen: Seen;
}

export function stepAfter(aggregate: Aggregate | undefined, seen: Seen): StepResult | undefined {
  return aggregate === undefined ? undefined : { aggregate, seen };
}
