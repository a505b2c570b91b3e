/**
 * Where nodes take money in advance: what the ledger of all nodes does for allowances. An allowance belongs to one key at one node; its
 * generation names it. What it holds counts as held on account and key, and is two sums: what open calls hold, and what is free.
 *
 * Amounts are E8 (1e-8 USD). Every operation is safe to repeat: a grant by its generation, a report by its sequence.
 */
import type { Payer } from '../payer';

export interface GrantRequest extends Payer {
  /** UUIDv7, made by the node. */
  readonly generation: string;
  /** The revision of the key's settings the node decides by. */
  readonly keyRev: number;
  readonly wantE8: bigint;
  /** What account and key must have available beside it. */
  readonly besideE8: bigint;
  /** With less than this nothing is granted. */
  readonly leastE8: bigint;
  readonly leaseMs: number;
}

/** `limited`: the key has a limit by the minute. `recalled`: an operation lacked money in the last 10 s. */
export type GrantOutcome =
  | { readonly outcome: 'granted'; readonly freeE8: bigint }
  | { readonly outcome: 'not_ready' | 'unknown_account' | 'frozen' | 'unknown_key' | 'revoked' | 'stale_key' }
  | { readonly outcome: 'limited' | 'recalled' | 'too_little' | 'closed_before' };

export interface ReportRequest extends Payer {
  readonly generation: string;
  /** One more than that of the report before; the first is 1. */
  readonly sequence: number;
  readonly keyRev: number;
  /** UUIDv7 of the entry; its embedded time is the `created_at` of its row. */
  readonly rid: string;
  /** The calls that ended since (reported-calls.ts), what they cost, and a digest of their ids and costs. */
  readonly calls: string;
  readonly costE8: bigint;
  /** What the calls cost beyond that, and cannot be charged. */
  readonly shortfallE8: bigint;
  readonly digest: string;
  /** What open calls hold. */
  readonly openE8: bigint;
  /** Free money that the node has no more. */
  readonly giveE8: bigint;
  /** Free money the node wants beside what it keeps; all that it wants, when it does not admit. */
  readonly wantE8: bigint;
  readonly besideE8: bigint;
  /** Whether the node may be admitting calls from what is free. */
  readonly admits: boolean;
  /** Whether money that is missing, and may be in other allowances, is waited for. */
  readonly isPatient: boolean;
  /** Whether an open call is to hold more because it has cost that: a frozen account pays for it, too. */
  readonly isSettling: boolean;
  readonly leaseMs: number;
}

/**
 * `reported`: now or before, with what is free of the allowance as the report left it. `mayAdmit`: the lease was renewed. Otherwise the
 * node must admit no more, and gives back what is free. `uncoveredE8` is what open calls hold without money behind it, because the lease
 * had ended, or one of them was to hold more than there is. `recalling`: other allowances may have what is missing; it is asked again.
 * `unknown_generation`: the ledger has lost the allowance, or a report of it. `other_report`: this sequence had other calls.
 */
export type ReportOutcome =
  | {
      readonly outcome: 'reported';
      readonly freeE8: bigint;
      readonly mayAdmit: boolean;
      readonly uncoveredE8: bigint;
    }
  | { readonly outcome: 'not_ready' | 'unknown_generation' | 'other_report' | 'recalling' };

export interface LastReport {
  /** 0 is the grant. */
  readonly sequence: number;
  readonly digest: string;
}

export interface AllowanceStore {
  grant(request: GrantRequest): Promise<GrantOutcome>;
  report(request: ReportRequest): Promise<ReportOutcome>;
  /** The last report that the ledger has of an allowance; undefined when it does not know the generation. */
  lastReport(accountId: string, generation: string): Promise<LastReport | undefined>;
  /** Tells all nodes at once that money of this account is wanted. */
  recall(accountId: string): void;
  /** Calls back when an operation lacks money that allowances of this account may have. A hint: reports say so, too. */
  onRecall(listener: (accountId: string) => void): void;
}

/** The right to admit calls from what is free, by the ledger's clock. A node counts it from before it asked, and stops earlier. */
export const ALLOWANCE_LEASE_MS = 3_000;
export const ADMIT_MS = 2_000;

/** How long an operation waits for money that was recalled, by its own clock: longer than any lease. */
export const RECALL_WAIT_MS = 3_200;
