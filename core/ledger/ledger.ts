/**
 * The ledger's contract: every operation, every outcome by name. Two implementations keep it: `MemoryLedger` (the
 * reference model, and the ledger of the embedded default) and `RedisLedger` (production). One suite holds both.
 *
 * Amounts are E8 (1e-8 USD), integers from 0 to 2^53 - 1. Every operation is safe to repeat by its id. An operation that
 * refuses has written nothing. When the store cannot be asked in time, operations reject with `LedgerUnavailable`. An id
 * that is used for two payers is a defect of the caller and rejects with `WrongPayer`.
 */
import type { ReportedCall } from './allowances/reported-calls';
import type { Inspection } from './inspection';
import type { KeyAccess } from './key-access';
import type { KeyLimits } from './limit-fields';
import type { AccountState, AccountStatus, Payer } from './payer';

/** The store did not answer in time or refused the connection; whether the operation took place is not known. */
export class LedgerUnavailable extends Error {
  override readonly name = 'LedgerUnavailable';
}

/** An id belongs to another account or key than the caller says. Nothing has been written. */
export class WrongPayer extends Error {
  override readonly name = 'WrongPayer';
}

export type KeyStatus = 'active' | 'revoked';

/** Settings of a key that a node may keep a copy of; `rev` counts their changes. A plain key has rev 0. */
export interface KeySettings {
  readonly rev: number;
  readonly name: string;
  /** Names of models this key may call; undefined for all. */
  readonly allowedModels: readonly string[] | undefined;
  /** What it pays in place of the upstream's price: a factor, or the name of a list; see `CustomerPrices`. Its account's where it has none. */
  readonly markup?: string | undefined;
  /** Absent: it may be shown from anywhere, at any time. */
  readonly access?: KeyAccess | undefined;
}

export interface KeyState extends KeyLimits {
  readonly status: KeyStatus;
  readonly spentE8: bigint;
  readonly heldE8: bigint;
  readonly settings: KeySettings;
}

/**
 * What a client means once, however often it asks: its Idempotency-Key and the call it stands for. Both are SHA-256 hashes in
 * base64url, so that neither the header nor the body is kept.
 */
export interface Intent {
  readonly key: string;
  readonly body: string;
}

/** An intent with the request that pays for it. */
export interface PaidIntent extends Intent {
  readonly requestId: string;
}

export interface ReserveRequest extends Payer {
  /** UUIDv7, made by the caller; its embedded time is the `created_at` of the rows it leads to. */
  readonly rid: string;
  /** The revision of the key's settings the node has decided by. */
  readonly keyRev: number;
  readonly amountE8: bigint;
  /** Lease; undefined for holds without a deadline (sandboxes). */
  readonly lifetimeMs: number | undefined;
  /** JSON: what the usage record needs if this reservation expires. */
  readonly record: string;
  /** Tokens the call may use at most. With it the request is one call of the key's limits by the minute; sandboxes have none. */
  readonly tokens?: number;
  /** Kept for INTENT_MS after the call; absent for a call without an Idempotency-Key. */
  readonly intent?: PaidIntent | undefined;
}

/**
 * A repetition is answered by what became of its id before anything else is looked at: `reserved` while it is open with
 * the same amount, `released_before` (also when the release came first), `closed_before` when it was settled or expired.
 * `stale_key` is for a node whose copy of the settings is older. `availableE8` is what the account has available, or what
 * the key's limit leaves.
 *
 * The `intent_…` outcomes are for another id with an Idempotency-Key that is known: the first call had another body, is open,
 * or was charged. `requestId` is the first call's, `rid` its reservation. A first call that ended with charge 0 is forgotten
 * and the new one is reserved. `too_many_intents`: the account has INTENTS_AT_MOST keys, and calls that are open have the oldest.
 */
export type ReserveOutcome =
  | { readonly outcome: 'reserved' }
  | { readonly outcome: 'not_ready' | 'unknown_account' | 'frozen' | 'unknown_key' | 'revoked' }
  | { readonly outcome: 'stale_key'; readonly settings: KeySettings }
  | { readonly outcome: 'rate_limited'; readonly retryAfterMs: number }
  | { readonly outcome: 'insufficient_balance' | 'key_limit_exceeded'; readonly availableE8: bigint }
  | { readonly outcome: 'exists_with_different_amount' | 'released_before' | 'closed_before' | 'too_many_intents' }
  | IntentOutcome;

export type IntentOutcome =
  | { readonly outcome: 'intent_conflict'; readonly requestId: string }
  | { readonly outcome: 'intent_open'; readonly requestId: string; readonly rid: string }
  | {
      readonly outcome: 'intent_charged';
      readonly requestId: string;
      readonly rid: string;
      readonly chargedE8: bigint;
    };

/** `rate_limited`: the key's limit of calls by the minute was used up before. A call that comes too early is not counted. */
export type CountOutcome =
  | { readonly outcome: 'counted' | 'unknown_key' | 'not_ready' }
  | { readonly outcome: 'rate_limited'; readonly retryAfterMs: number };

export interface SettleRequest extends Payer {
  readonly rid: string;
  readonly costE8: bigint;
  /** JSON: the finished usage record but for `cost`, which the shipper takes from the entry. */
  readonly record: string;
  /** Tokens the call has used; what was expected beyond them is given back to the key's limit by the minute. */
  readonly tokens?: number | undefined;
  /**
   * The hold may have been lost with its ledger, and Postgres has no entry of it: of an id that is unknown at most what is
   * available is charged. Nothing is charged where the `intent` in the record's `routing` belongs to another call by now.
   */
  readonly isLate?: boolean;
}

/**
 * `settled`: charged is the cost, or above the hold at most what was available on account and key (the rest is the
 * shortfall). The same answer for every repetition, whatever cost it names. `released` and `expired`: closed before,
 * nothing is charged.
 */
export type SettleOutcome =
  | { readonly outcome: 'settled'; readonly chargedE8: bigint; readonly shortfallE8: bigint }
  | { readonly outcome: 'not_ready' | 'unknown_reservation' | 'released' | 'expired' };

export interface ReleaseRequest extends Payer {
  readonly rid: string;
  readonly record: string;
}

/**
 * `tombstoned`: the id was unknown; for a quarter of an hour a reserve that comes late is refused with `released_before`.
 * It has no entry in the outbox. `settled` and `expired`: closed before, nothing changes.
 */
export type ReleaseOutcome = {
  readonly outcome: 'released' | 'tombstoned' | 'settled' | 'expired' | 'not_ready';
};

export interface RenewRequest extends Payer {
  readonly rid: string;
  /** A lease from now on; undefined leaves the deadline. A hold without a deadline never gets one. */
  readonly lifetimeMs: number | undefined;
  /** What the hold must be at least from now on; absent, or less than it is, leaves it as it is. */
  readonly amountE8?: bigint;
}

/** `availableE8` is what the account has, or the key's limit leaves, beside the hold. */
export type RenewOutcome =
  | { readonly outcome: 'renewed' | 'not_open' | 'not_ready' | 'frozen' }
  | { readonly outcome: 'insufficient_balance' | 'key_limit_exceeded'; readonly availableE8: bigint };

/** Settles one hold and takes the next, which has no deadline, in one step. Safe to repeat by both ids. */
export interface RollRequest extends SettleRequest {
  readonly next: { readonly rid: string; readonly amountE8: bigint };
}

/**
 * `rolled`: both were done, now or before. `settled`: the first hold was settled on its own before, and nothing is taken.
 * Everything else has changed nothing; `availableE8` is then what there would be for the next hold, after the cost. A key
 * that is revoked is not refused: it stops calls, not what runs already. `frozen` is.
 */
export type RollOutcome =
  | { readonly outcome: 'rolled' | 'settled'; readonly chargedE8: bigint; readonly shortfallE8: bigint }
  | { readonly outcome: 'insufficient_balance' | 'key_limit_exceeded'; readonly availableE8: bigint }
  | { readonly outcome: 'not_ready' | 'unknown_reservation' | 'released' | 'expired' | 'frozen' }
  | { readonly outcome: 'exists_with_different_amount' | 'released_before' };

export type ExpireOutcome = { readonly outcome: 'expired' | 'not_due' | 'not_ready' };

export interface CreditRequest {
  readonly accountId: string;
  /** UUIDv7 of the row in `credits`; a second credit with the same id changes nothing. */
  readonly rid: string;
  /** Negative for an adjustment, which is refused above what is available. */
  readonly amountE8: bigint;
}
/** `credited` has what is posted now, also for a repetition. `above_maximum`: the balance would leave the range that is exact. `insufficient_balance`: a debit above what is available. */
export type CreditOutcome =
  | { readonly outcome: 'credited'; readonly postedE8: bigint }
  | { readonly outcome: 'not_ready' | 'unknown_account' | 'above_maximum' | 'insufficient_balance' };

export interface SetKeyRequest extends Payer, KeyLimits {
  /** SHA-256 of the secret in force, in lower-case hex: the index entry is written before the secret is shown. */
  readonly hash: string;
  readonly status: KeyStatus;
  /** Applied only when `rev` is not lower than what is there: a late repetition never undoes a newer change. */
  readonly settings: KeySettings;
}

/** `unknown` is sure; while the key index is being rebuilt the answer is `not_ready`. */
export type FindKeyOutcome =
  | { readonly outcome: 'found'; readonly accountId: string; readonly keyId: string }
  | { readonly outcome: 'unknown' | 'not_ready' };

export type EntryKind = 'credit' | 'charge' | 'release' | 'expire';

/** One entry of a shard's outbox: what Postgres is told, in order, exactly once. */
export interface OutboxEntry {
  /** The position in the shard's outbox, increasing. */
  readonly id: string;
  readonly kind: EntryKind;
  readonly accountId: string;
  readonly keyId: string | undefined;
  readonly rid: string;
  readonly seq: number;
  /** What the entry adds to `posted`: negative for a charge, 0 for a release or an expiry. */
  readonly amountE8: bigint;
  /** `posted` after it. */
  readonly postedE8: bigint;
  readonly shortfallE8: bigint;
  /** JSON of the usage record but for its cost; undefined where there is none (credits, sandbox holds). */
  readonly record: string | undefined;
  /** Of a report: the calls that its charge pays for, with a usage record each. `rid` is the report's own then. */
  readonly calls?: readonly ReportedCall[] | undefined;
}

/** What recovery writes back of one account: the sums of Postgres. */
export interface AccountSnapshot {
  readonly accountId: string;
  readonly status: AccountStatus;
  readonly postedE8: bigint;
  readonly seq: number;
  readonly keys: readonly KeySnapshot[];
  /** Ids of entries so recent that a repetition may still come. */
  readonly closed: readonly ClosedEntry[];
  /** Holds without a deadline, oldest first. What the balance does not cover is cut from the last ones. */
  readonly open: readonly OpenHold[];
}

export interface KeySnapshot extends SetKeyRequest {
  readonly spentE8: bigint;
  /** For a key with a limit of a day or a month: which day and month it is (key-limits.ts), and what was spent in them. */
  readonly windows?: SpendingWindows | undefined;
}

export interface SpendingWindows {
  readonly day: number;
  readonly daySpentE8: bigint;
  readonly month: number;
  readonly monthSpentE8: bigint;
}

/** A hold without a deadline, as whoever took it remembers it. */
export interface OpenHold extends Payer {
  readonly rid: string;
  readonly amountE8: bigint;
}

export interface ClosedEntry extends Pick<OutboxEntry, 'rid' | 'kind' | 'keyId' | 'amountE8' | 'shortfallE8'> {
  /** Of a charged call that had an Idempotency-Key. */
  readonly intent?: PaidIntent | undefined;
}

export const SHARDS = 256;

/** How long a closed reservation is remembered after its row is committed, and a tombstone after it was written. */
export const CLOSED_MS = 15 * 60_000;

/**
 * How long an Idempotency-Key is known after its call has ended. It is counted from when Postgres has the call's entry, and is
 * shorter than CLOSED_MS, because the reservation says how the call ended.
 */
export const INTENT_MS = 10 * 60_000;

/** How many Idempotency-Keys of one account are known. The oldest one whose call has ended gives way to a new one. */
export const INTENTS_AT_MOST = 10_000;

export interface Ledger {
  findKey(hash: string): Promise<FindKeyOutcome>;
  reserve(request: ReserveRequest): Promise<ReserveOutcome>;
  /** Counts a call that was refused without a hold, for the key's limit of calls by the minute. */
  countRefused(payer: Payer): Promise<CountOutcome>;
  settle(request: SettleRequest): Promise<SettleOutcome>;
  release(request: ReleaseRequest): Promise<ReleaseOutcome>;
  renew(request: RenewRequest): Promise<RenewOutcome>;
  roll(request: RollRequest): Promise<RollOutcome>;
  expire(payer: Payer, rid: string): Promise<ExpireOutcome>;
  credit(request: CreditRequest): Promise<CreditOutcome>;
  /** Makes the account or changes its status. Rejects with LedgerUnavailable while not ready, as setKey does. */
  setAccount(accountId: string, status: AccountStatus): Promise<void>;
  setKey(request: SetKeyRequest): Promise<void>;

  /** undefined when there is no such account. Rejects with LedgerUnavailable while not ready. */
  readAccount(accountId: string): Promise<AccountState | undefined>;
  readKey(payer: Payer): Promise<KeyState | undefined>;

  /** Reservations of this shard whose lease has ended, oldest first. */
  due(shard: number, limit: number): Promise<readonly (Payer & { readonly rid: string })[]>;
  /** The head of the shards' outboxes, in order, at most `limit` entries each. Only shards that have entries are in the map. */
  readOutbox(shards: readonly number[], limit: number): Promise<ReadonlyMap<number, readonly OutboxEntry[]>>;
  /** Forgets these entries, read from the head and committed as rows; their reservations are forgotten after CLOSED_MS. */
  trimOutbox(shard: number, entries: readonly OutboxEntry[]): Promise<void>;

  /** What its outboxes take of the memory it may use, from 0 to 1. */
  outboxShare(): Promise<number>;

  /** Looks at accounts of one shard, and at some of their keys, at one moment. Rejects with LedgerUnavailable while not ready. */
  inspect(shard: number, accountIds: readonly string[], keyIds: readonly string[]): Promise<Inspection>;

  /**
   * True once the store has been filled from Postgres, and is still the one that was: one that was restarted, promoted or
   * emptied since may have gone back in time, and nothing is asked of it until it was compared with Postgres (`open`).
   */
  isReady(): Promise<boolean>;
  /** How long ago it was opened, by its own clock. */
  openedAgoMs(): Promise<number>;
  /** Recovery of a ledger that answers but is found to be wrong: nothing is answered until `open`. */
  shut(): Promise<void>;
  /** Recovery, first. What it answers is given to `open`. */
  begin(): Promise<string>;
  /**
   * Recovery: writes accounts that are absent or behind; of what was held only the snapshot's open holds stay. The money of
   * those whose seq is not lower stays as it is; their status, and keys that are missing or have an older revision, are
   * written. Index entries of all keys are.
   */
  restore(accounts: readonly AccountSnapshot[]): Promise<void>;
  /**
   * Recovery, last: from here on the ledger answers. `lost` when what was written since `begin` is gone again, and the ledger stays
   * shut; one that was not begun, of a test for example, is opened as it is.
   */
  open(begun?: string): Promise<'opened' | 'lost'>;
  close(): Promise<void>;
}
