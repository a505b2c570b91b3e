/**
 * The operations of the shared ledger for allowances: money that a node gets in advance.
 *
 * An allowance belongs to one key at one node, and its generation identifies it. All of its money counts as held on the account and the
 * key. The money has two parts: what open calls hold, and free money.
 *
 * Amounts are E8 (1e-8 USD). Every operation is safe to repeat: the ledger recognizes a grant by its generation, a report by its sequence.
 */
import type { Payer } from '../ledger';

export interface GrantRequest extends Payer {
  /** The id of the allowance: a UUIDv7 that the node makes. */
  readonly generation: string;
  /** The revision of the key's settings that the node has cached. */
  readonly keyRev: number;
  readonly wantE8: bigint;
  /** How much money must remain available on the account and the API key after the ledger has granted an allowance. */
  readonly besideE8: bigint;
  /** The smallest allowance (money that a node holds in advance) that the node accepts. If less money is available, the ledger grants nothing. */
  readonly minE8: bigint;
  readonly leaseMs: number;
}

/**
 * The outcome of a request for an allowance. `limited`: the API key has a per-minute limit. `recalled`: in the last 10 s, an operation of
 * the account lacked money. In both cases the ledger grants nothing.
 *
 * `limitedTags`: the names of the account's tags that have a limit, separated by spaces. A call with such a tag needs the ledger, because
 * no allowance has money of a tag.
 */
export type GrantOutcome =
  | { readonly outcome: 'granted'; readonly freeE8: bigint; readonly limitedTags: string }
  | { readonly outcome: 'not_ready' | 'unknown_account' | 'frozen' | 'unknown_key' | 'revoked' | 'stale_key' }
  | { readonly outcome: 'limited' | 'recalled' | 'too_little' | 'closed_before' };

export interface ReportRequest extends Payer {
  readonly generation: string;
  /** The number of this report; the first report of an allowance has 1. */
  readonly sequence: number;
  readonly keyRev: number;
  /** The UUIDv7 of the report's outbox entry; its embedded time becomes the `created_at` of the entry's row. */
  readonly rid: string;
  /** The calls that ended since the previous report (format: reported-calls.ts). `costE8` is their charged cost, `digest` a hash of their ids and costs. */
  readonly calls: string;
  readonly costE8: bigint;
  /** The part of the calls' total cost that the ledger cannot charge; `costE8` does not include it. */
  readonly shortfallE8: bigint;
  readonly digest: string;
  /** The money of an allowance that open calls hold, in total. */
  readonly openE8: bigint;
  /** Free money (not held by open calls) of an allowance, which the node gives back and no longer uses. */
  readonly giveE8: bigint;
  /** Free money that the node requests in addition to the free money that it keeps. If `admits` is false, the node keeps none. */
  readonly wantE8: bigint;
  readonly besideE8: bigint;
  /** Whether the node may currently be admitting calls from the free money of an allowance. */
  readonly admits: boolean;
  /** Whether the node waits if money is missing, because other nodes may return it from their allowances. */
  readonly isPatient: boolean;
  /** Whether an open call needs a larger hold because it has already cost more. Even a frozen account pays for it. */
  readonly isSettling: boolean;
  readonly leaseMs: number;
}

/**
 * `reported`: the ledger has applied this report, now or earlier. `freeE8` is the allowance's free money (not held by open calls) after the
 * report. `mayAdmit`: the ledger has renewed the lease. If it is false, the node must stop admitting calls and give back its free money.
 * `uncoveredE8`: the part of the open calls' holds that no money covers. The cause is a lease that had ended, or a hold that grew beyond
 * the available money. `limitedTags`: as for a grant.
 *
 * `recalling`: other allowances may have the missing money, and the node repeats the report. `unknown_generation`: the ledger has lost the
 * allowance, or one of its earlier reports. `other_report`: the ledger already has a report with this sequence but with other calls.
 */
export type ReportOutcome =
  | {
      readonly outcome: 'reported';
      readonly freeE8: bigint;
      readonly mayAdmit: boolean;
      readonly uncoveredE8: bigint;
      readonly limitedTags: string;
    }
  | { readonly outcome: 'not_ready' | 'unknown_generation' | 'other_report' | 'recalling' };

export interface LastReport {
  /** The number of the report; 0 for the grant, before any report. */
  readonly sequence: number;
  readonly digest: string;
}

export interface AllowanceStore {
  grant(request: GrantRequest): Promise<GrantOutcome>;
  report(request: ReportRequest): Promise<ReportOutcome>;
  /**
   * Returns the last report of an allowance that the ledger has applied. Returns undefined if the ledger does not know an allowance with
   * this generation (its id).
   */
  lastReport(accountId: string, generation: string): Promise<LastReport | undefined>;
  /** Publishes to all nodes at once that an operation needs money, which nodes may hold in allowances of this account. */
  recall(accountId: string): void;
  /**
   * Calls the listener when an operation lacks money that allowances of this account may have. A node that misses the event gets the same
   * information in the answer to its next report.
   */
  onRecall(listener: (accountId: string) => void): void;
}

/**
 * How long a node may admit calls from the free money of an allowance, by the ledger's clock. The node counts from the moment before its
 * request and stops earlier: after ADMIT_MS.
 */
export const ALLOWANCE_LEASE_MS = 3_000;
export const ADMIT_MS = 2_000;

/**
 * How long an operation waits for money that the ledger recalls from allowances. The node that runs the operation measures the time. It is
 * longer than the lease of any allowance.
 */
export const RECALL_WAIT_MS = 3_200;
