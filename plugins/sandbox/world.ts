import type { Ledger } from '../../core/ledger/ledger';
import type { SupplierDriver, Tags } from '../../core/supplier';
import type { Aggregate, Change } from './aggregate';
import type { Seen, SupplierVerb } from './plan';
import type { Period, Sandbox } from './sandbox';
import type { Timings } from './timings';

/** How a call of the supplier ended, for the books. */
export interface SupplierCall {
  readonly sandboxId: string;
  readonly supplier: string;
  readonly verb: SupplierVerb;
  readonly name: string;
  readonly outcome: 'OK' | 'REJECTED' | 'NOT_SENT' | 'AMBIGUOUS';
  readonly message: string | null;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
}

/** What the ledger has taken for a period; the rest of what was due is the shortfall. */
export interface Charge {
  readonly chargedE8: bigint;
  readonly shortfallE8: bigint;
}

/** What a step needs of the world; tests have their own clock, supplier and books. */
export interface World {
  readonly ledger: Pick<Ledger, 'reserve' | 'settle' | 'release' | 'renew' | 'roll'>;
  readonly timings: Timings;
  now(): number;
  driverOf(sandbox: Sandbox): SupplierDriver;
  tagsOf(sandbox: Sandbox): Tags;
  /** Writes a change; answers what is there then, or undefined when the lease is lost. */
  commit(aggregate: Aggregate, change: Change): Promise<Aggregate | undefined>;
  noteCall(call: SupplierCall): Promise<void>;
  chargeOf(period: Period): Promise<Charge | undefined>;
  /** So many instances of this supplier are gone at once that it is believed of none. */
  areTooManyGone(supplier: string): Promise<boolean>;
}

export interface Step {
  readonly aggregate: Aggregate;
  readonly seen: Seen;
}

export function stepAfter(aggregate: Aggregate | undefined, seen: Seen): Step | undefined {
  return aggregate === undefined ? undefined : { aggregate, seen };
}
