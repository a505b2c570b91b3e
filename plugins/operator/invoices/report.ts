import type { Meter } from '../../../core/catalog/usage';

/** What a vendor says was used on one day, by one of its API keys at one model and tier. */
export interface ReportedUsage {
  /** Day of UTC. */
  readonly day: string;
  /** The vendor's id; null where the vendor names none. */
  readonly apiKeyId: string | null;
  readonly workspaceId: string | null;
  /** As the vendor names it. */
  readonly model: string;
  readonly tier: string | null;
  /** Meters that the report has; the ones it lacks are not compared. */
  readonly counts: ReadonlyMap<Meter, bigint>;
}

/** What a vendor charges for one day. */
export interface ReportedCost {
  readonly day: string;
  /** Workspace or project; null is the default one, or none. */
  readonly workspaceId: string | null;
  /** What it is for, in the vendor's words. */
  readonly item: string | null;
  /** In 1e-14 USD. */
  readonly amountE14: bigint;
}

export interface Report {
  readonly usage: readonly ReportedUsage[];
  readonly costs: readonly ReportedCost[];
}

/** A report that could not be read, and why. */
export class ReportFailure extends Error {
  override readonly name = 'ReportFailure';
}
