import type { SupplierVerb } from '../life/plan';

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
