import type { Meter } from '../../core/catalog/usage';

/** The usage that a vendor reports for one day, one of its API keys, one model and one tier. */
export interface ReportedUsage {
  /** The UTC day. */
  readonly day: string;
  /** The vendor's id of the key; null where the vendor names none. */
  readonly apiKeyId: string | null;
  readonly workspaceId: string | null;
  /** The vendor's name of the model. */
  readonly model: string;
  readonly tier: string | null;
  /** The count of each meter that the report has. Meters that it lacks are not compared. */
  readonly counts: ReadonlyMap<Meter, bigint>;
}

/** One charge of a vendor for one day. */
export interface ReportedCost {
  readonly day: string;
  /** The workspace or project; null is the default one, or none. */
  readonly workspaceId: string | null;
  /** The charged item, in the vendor's words. */
  readonly item: string | null;
  /** The amount in 1e-14 USD. */
  readonly amountE14: bigint;
}

export interface Report {
  readonly usage: readonly ReportedUsage[];
  readonly costs: readonly ReportedCost[];
}

/** A report could not be read; the message says why. */
export class ReportFailure extends Error {
  override readonly name = 'ReportFailure';
}
