import type { SupplierVerb } from '../life/plan';

/** The record of one supplier call and its outcome. */
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

/** What the ledger charged for a period. The shortfall is the part of the due amount that it could not charge. */
export interface Charge {
  readonly chargedE8: bigint;
  readonly shortfallE8: bigint;
}
