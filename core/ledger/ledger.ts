/**
 * The ledger's contract: every operation and every outcome by name, in three interfaces. `MemoryLedger` (the reference model, and the
 * embedded default) and `RedisLedger` (production) implement all of it, `AllowanceLedger` only that of calls. One test suite checks all
 * three.
 *
 * Amounts are E8 (1e-8 USD), integers from 0 to 2^53 - 1. Every operation is safe to repeat with its id. A refused operation has written
 * nothing. If the store does not answer in time, operations reject with `LedgerUnavailable`. If a caller uses one id for two payers, which
 * is a defect, they reject with `WrongPayer`.
 */
import type { MaybeLater } from '../base/maybe-later';
import type { ReportedCall } from './allowances/reported-calls';
import type { KeyAccess } from './key-access';
import type { KeyLimits } from './limit-fields';
import type { ReachedLimit, Spending, SpendingLimits } from './scopes';

/** The error if the store did not answer in time, or refused the connection. The operation may or may not have been applied. */
export class LedgerUnavailable extends Error {
  override readonly name = 'LedgerUnavailable';
}

/** The error if an id already belongs to another account or key than those in the request. The operation has written nothing. */
export class WrongPayer extends Error {
  override readonly name = 'WrongPayer';
}

/** The account and the key whose money an operation changes. */
export interface Payer {
  readonly accountId: string;
  readonly keyId: string;
}

export type AccountStatus = 'active' | 'frozen';

export interface AccountState {
  readonly status: AccountStatus;
  readonly availableE8: bigint;
  readonly heldE8: bigint;
  /** The account's balance: always `availableE8` + `heldE8`. */
  readonly postedE8: bigint;
  /** The number of the account's last outbox entry. */
  readonly seq: number;
}

export type KeyStatus = 'active' | 'revoked';

/** The settings of a key, which a node may cache. `rev` counts their changes, from 0. */
export interface KeySettings {
  readonly rev: number;
  readonly name: string;
  /** Names of the models that this key may call; undefined for all. */
  readonly allowedModels: readonly string[] | undefined;
  /**
   * What the key pays instead of the upstream's price: a factor, or the name of a price list (see `CustomerPrices`). A key without its own
   * markup uses its account's.
   */
  readonly markup?: string | undefined;
  /** What the key, its team and its account demand of upstreams, joined (see `Demands`); undefined for nothing. */
  readonly require?: string | undefined;
  /** The addresses and times at which the key may be used; absent for no restriction. */
  readonly access?: KeyAccess | undefined;
  /** The team and the member of the account to which the calls of the key belong; undefined for none. */
  readonly teamId?: string | undefined;
  readonly memberId?: string | undefined;
  /** The names of the tags that every call of the key must have: those that the key requires and those that its team requires; absent for none. */
  readonly requiredTags?: readonly string[] | undefined;
}

export interface KeyState extends KeyLimits {
  readonly status: KeyStatus;
  readonly spentE8: bigint;
  readonly heldE8: bigint;
  readonly settings: KeySettings;
}

/**
 * A client's request that is charged once, however often the client repeats it: its Idempotency-Key and its body. Both are SHA-256 hashes
 * in base64url, so that the ledger stores neither the header nor the body.
 */
export interface Intent {
  readonly key: string;
  readonly body: string;
}

/** An intent (the Idempotency-Key and the body of a call), and the id of the request whose call is charged for the intent. */
export interface PaidIntent extends Intent {
  readonly requestId: string;
}

export interface ReserveRequest extends Payer {
  /** The id of the reservation, a UUIDv7 from the caller; its embedded time becomes the `created_at` of the resulting rows. */
  readonly rid: string;
  /** The revision of the key's settings that the node has cached. */
  readonly keyRev: number;
  readonly amountE8: bigint;
  /**
   * The smallest hold that is enough for the caller. If set, the hold is at most half of the money that the account and the key still have.
   * It is never below this minimum. undefined: the ledger holds the whole amount or nothing.
   */
  readonly minE8?: bigint | undefined;
  /** The length of the lease in milliseconds; undefined for a hold without a deadline (sandboxes). */
  readonly lifetimeMs: number | undefined;
  /** The facts of the call that are known at its start, as JSON. If the hold expires, the shipper makes a usage record from them. Absent for a sandbox. */
  readonly facts?: string | undefined;
  /** The most tokens that the call may use. If set, the request counts as one call in the key's per-minute limits. Absent for sandboxes. */
  readonly tokens?: number;
  /** The intent of the call (its Idempotency-Key and body). The ledger keeps it for INTENT_MS after the call. Absent for a call without an Idempotency-Key. */
  readonly intent?: PaidIntent | undefined;
  /** All tags of the call as `name=value`, separated by spaces, for example `agent=a1 customer=4711 end_user=u session=s`; absent without tags. */
  readonly tags?: string | undefined;
}

/**
 * If the ledger knows the id, its state decides before anything else. `reserved`: the reservation is open and holds `heldE8`, which is
 * within the amounts of the request. `released_before`: it was released, perhaps before this reserve arrived. `closed_before`: it was
 * settled or expired. `stale_key`: the node's copy of the settings is outdated.
 *
 * The `intent_…` outcomes answer a new id with a known Idempotency-Key: the first call had another body, is still open, or was charged.
 * `requestId` and `rid` are those of the first call. If the first call ended without a charge, the ledger discards its intent and reserves
 * for the new call. `too_many_intents`: the account has MAX_INTENTS keys, and the oldest belong to open calls.
 *
 * `too_many_limited_tags`: more tags of the call have a limit than a call may count in. `too_many_tags`: the ledger counts the most values
 * of tags that it may for the account, and the call has another one.
 */
export type ReserveOutcome =
  | { readonly outcome: 'reserved'; readonly heldE8: bigint }
  | { readonly outcome: 'not_ready' | 'unknown_account' | 'frozen' | 'unknown_key' | 'revoked' }
  | { readonly outcome: 'stale_key'; readonly settings: KeySettings }
  | { readonly outcome: 'rate_limited'; readonly retryAfterMs: number }
  | MoneyMissing
  | { readonly outcome: 'exists_with_different_amount' | 'released_before' | 'closed_before' | 'too_many_intents' }
  | { readonly outcome: 'too_many_limited_tags' | 'too_many_tags' }
  | IntentOutcome;

/**
 * An operation needs more than the balance or a limit leaves. `availableE8` is what the account has available, or what the limit leaves.
 * If several do not suffice, the answer names the one that leaves least.
 */
export type MoneyMissing =
  | { readonly outcome: 'insufficient_balance'; readonly availableE8: bigint }
  | { readonly outcome: 'limit_exceeded'; readonly availableE8: bigint; readonly limit: ReachedLimit };

export type IntentOutcome =
  | { readonly outcome: 'intent_conflict'; readonly requestId: string }
  | { readonly outcome: 'intent_open'; readonly requestId: string; readonly rid: string }
  | {
      readonly outcome: 'intent_charged';
      readonly requestId: string;
      readonly rid: string;
      readonly chargedE8: bigint;
    };

/** `rate_limited`: the key's per-minute limit of calls was already used up. The ledger does not add the call to the count. */
export type CountOutcome =
  | { readonly outcome: 'counted' | 'unknown_key' | 'not_ready' }
  | { readonly outcome: 'rate_limited'; readonly retryAfterMs: number };

export interface SettleRequest extends Payer {
  readonly rid: string;
  readonly costE8: bigint;
  /** The JSON of the finished usage record without `cost`, which the shipper reads from the entry. */
  readonly record: string;
  /** How many tokens the call has used. If it was expected to use more, the ledger gives the rest back to the API key's per-minute limit. */
  readonly tokens?: number | undefined;
  /**
   * Whether the ledger may have lost the hold, and Postgres has no entry of it. If the id is unknown, the ledger then charges at most what
   * is available. It charges nothing if another call now owns the Idempotency-Key that the record names (`routing.intent`).
   */
  readonly isLate?: boolean;
}

/**
 * `settled`: the cost is charged. If the cost exceeds the hold, the ledger charges the excess up to the available money of the account and
 * the key. The rest is the shortfall. Every repetition gets the same answer, whatever cost it contains. `released` and `expired`: the
 * reservation was closed before, and nothing is charged.
 */
export type SettleOutcome =
  | { readonly outcome: 'settled'; readonly chargedE8: bigint; readonly shortfallE8: bigint }
  | { readonly outcome: 'not_ready' | 'unknown_reservation' | 'released' | 'expired' };

export interface ReleaseRequest extends Payer {
  readonly rid: string;
  readonly record: string;
}

/**
 * `tombstoned`: the id was unknown. For CLOSED_MS, a late reserve with this id gets `released_before`. The outbox gets no entry. `settled`
 * and `expired`: the reservation was closed before, and nothing changes.
 */
export type ReleaseOutcome = {
  readonly outcome: 'released' | 'tombstoned' | 'settled' | 'expired' | 'not_ready';
};

export interface RenewRequest extends Payer {
  readonly rid: string;
  /** The length of the new lease from now on, in milliseconds; undefined keeps the deadline. A hold without a deadline never gets one. */
  readonly lifetimeMs: number | undefined;
  /** The amount to which a hold without a deadline is raised. The hold does not change if this is absent or less than the hold. */
  readonly amountE8?: bigint;
}

/** The balance and the limits are what they leave in addition to the hold. */
export type RenewOutcome = { readonly outcome: 'renewed' | 'not_open' | 'not_ready' | 'frozen' } | MoneyMissing;

/** Settles one hold and reserves the next, which has no deadline, in one step. Both ids make it safe to repeat. */
export interface RollRequest extends SettleRequest {
  readonly next: { readonly rid: string; readonly amountE8: bigint };
}

/**
 * `rolled`: both steps are done, now or before. `settled`: the first hold was already settled separately, and no next hold is reserved. All
 * other outcomes change nothing. Their `availableE8` is what the next hold could have after the cost.
 *
 * A revoked key does not prevent a roll, because a revocation stops new calls and not what already runs. A frozen account does.
 */
export type RollOutcome =
  | { readonly outcome: 'rolled' | 'settled'; readonly chargedE8: bigint; readonly shortfallE8: bigint }
  | MoneyMissing
  | { readonly outcome: 'not_ready' | 'unknown_reservation' | 'released' | 'expired' | 'frozen' }
  | { readonly outcome: 'exists_with_different_amount' | 'released_before' };

export type ExpireOutcome = { readonly outcome: 'expired' | 'not_due' | 'not_ready' };

export interface CreditRequest {
  readonly accountId: string;
  /** The UUIDv7 of the row in `credits`; a second credit with the same id changes nothing. */
  readonly rid: string;
  /** The credited amount; negative for an adjustment, which the ledger refuses if it exceeds what is available. */
  readonly amountE8: bigint;
}
/**
 * `credited`: `postedE8` is the current balance, also for a repetition. `above_maximum`: the balance would leave the range of exact
 * amounts. `insufficient_balance`: an adjustment exceeds what is available.
 */
export type CreditOutcome =
  | { readonly outcome: 'credited'; readonly postedE8: bigint }
  | { readonly outcome: 'not_ready' | 'unknown_account' | 'above_maximum' | 'insufficient_balance' };

export interface SetKeyRequest extends Payer, KeyLimits {
  /** The SHA-256 of the current secret, in lower-case hex. The index entry is written before the client receives the secret. */
  readonly hash: string;
  readonly status: KeyStatus;
  /** The key's settings. They are applied only if `rev` is not lower than the stored one, so that a late repetition never undoes a newer change. */
  readonly settings: KeySettings;
}

/**
 * The limits of an account, of a tag's name or of one of its values, or a team or a member with its limits. Its name is as in scopes.ts, for
 * example `t:<team>`.
 */
export interface SetScopeRequest {
  readonly accountId: string;
  readonly scope: string;
  /** Counts the changes, from 0. A change with a lower one than the stored one is not applied. */
  readonly rev: number;
  /** The name of the account or team, or the member's e-mail address, for the answer to a call that its limit refuses. */
  readonly name: string;
  readonly limits: SpendingLimits;
  /** Whether a tag's name or one of its values has a limit, so that calls with the name count; absent for other scopes. */
  readonly isLimited?: boolean | undefined;
}

/** What Postgres has of a tag's value: its spending, its own limits and their revision. */
export interface TagState {
  readonly scope: string;
  readonly rev: number;
  readonly limits: SpendingLimits;
  readonly spending: Spending;
}

/** Reads the values of tags from Postgres that the ledger does not have, by the names of their scopes. @throws LedgerUnavailable */
export type TagReader = (scopes: readonly string[]) => Promise<readonly TagState[]>;

export interface ScopeState {
  readonly limits: SpendingLimits;
  readonly heldE8: bigint;
  readonly spending: Spending;
}

/** `unknown`: no such key exists. While the key index is being rebuilt, the outcome is `not_ready` instead. */
export type FindKeyOutcome =
  | { readonly outcome: 'found'; readonly accountId: string; readonly keyId: string }
  | { readonly outcome: 'unknown' | 'not_ready' };

export type EntryKind = 'credit' | 'charge' | 'release' | 'expire';

/** One entry of a shard's outbox. Postgres receives the entries in order, each exactly once. */
export interface OutboxEntry {
  /** The entry's position in the shard's outbox, increasing. */
  readonly id: string;
  readonly kind: EntryKind;
  readonly accountId: string;
  readonly keyId: string | undefined;
  readonly rid: string;
  readonly seq: number;
  /** The amount that the entry adds to the account's balance (`posted`): negative for a charge, 0 for a release or an expiry. */
  readonly amountE8: bigint;
  /** The balance of the account (`posted`) after this entry. */
  readonly postedE8: bigint;
  readonly shortfallE8: bigint;
  /** The JSON of the usage record without its cost, or of the facts of an expired call; undefined for credits and sandbox holds. */
  readonly record: string | undefined;
  /** The calls that a report's charge pays for, each with a usage record. The entry's `rid` is then the report's own id. */
  readonly calls?: readonly ReportedCall[] | undefined;
  /** The scopes of a charge beside its account and key, separated by spaces (see scopes.ts); absent if there are none. */
  readonly scopes?: string | undefined;
  /** The day on which a charge counts, as the number of days since 1970; absent for a charge of 0 and for all other entries. */
  readonly day?: number | undefined;
}

/** The state of one account in Postgres, from which recovery restores it in the ledger. */
export interface AccountSnapshot {
  readonly accountId: string;
  readonly status: AccountStatus;
  readonly postedE8: bigint;
  readonly seq: number;
  /** What the account has spent. */
  readonly spending: Spending;
  /** The limits of the account, of its tags and their values, and its teams and members. Keys are not among them. */
  readonly scopes: readonly ScopeSnapshot[];
  readonly keys: readonly KeySnapshot[];
  /** The account's entries that are so recent that their request may still be repeated. */
  readonly closed: readonly ClosedEntry[];
  /** The account's open holds without a deadline, oldest first. If the balance does not cover all of them, recovery reduces the newest ones. */
  readonly open: readonly OpenHold[];
}

export interface ScopeSnapshot extends SetScopeRequest {
  readonly spending: Spending;
}

export interface KeySnapshot extends SetKeyRequest {
  readonly spending: Spending;
}

/** A hold without a deadline, as recorded in Postgres by the feature that reserved it. */
export interface OpenHold extends Payer {
  readonly rid: string;
  readonly amountE8: bigint;
  /** The scopes that the hold counts in beside its account and key, separated by spaces. */
  readonly scopes: string;
}

export interface ClosedEntry extends Pick<OutboxEntry, 'rid' | 'kind' | 'keyId' | 'amountE8' | 'shortfallE8'> {
  /** The intent (Idempotency-Key and body) of a charged call; undefined for all other entries, and for a call without an Idempotency-Key. */
  readonly intent?: PaidIntent | undefined;
}

/** A consistent view of some accounts of one shard, read at one moment. */
export interface LedgerInspection {
  /** The time on the ledger's own clock. The ledger decides by this clock which deadlines have passed. */
  readonly nowMs: number;
  readonly accounts: ReadonlyMap<string, AccountState>;
  /** What is read of scopes, by their names (see scopes.ts). */
  readonly scopes: ReadonlyMap<string, ScopeMoney>;
  /** All open holds of the accounts in this view, under all of their API keys. */
  readonly holds: readonly SeenHold[];
}

export interface ScopeMoney {
  readonly spentE8: bigint;
  readonly heldE8: bigint;
  readonly limitE8?: bigint | undefined;
}

export interface SeenHold extends Payer {
  readonly rid: string;
  readonly amountE8: bigint;
  /** When the lease ends, by the ledger's clock; undefined for a hold without a deadline. */
  readonly deadlineMs: number | undefined;
  /** The scopes that the hold counts in beside its account and key, separated by spaces. */
  readonly scopes: string;
  /** Whether the hold belongs to a call. A call's hold has the call's facts; a sandbox's hold has none. */
  readonly ofCall: boolean;
}

export const SHARDS = 256;

/** How long the ledger keeps a closed reservation after its row is committed, and a tombstone after it was written. */
export const CLOSED_MS = 15 * 60_000;

/**
 * How long the ledger keeps an Idempotency-Key after Postgres has the call's entry. It is shorter than CLOSED_MS, for which the ledger
 * keeps the reservation, because only the reservation says how the call ended.
 */
export const INTENT_MS = 10 * 60_000;

/** After how long without a call the ledger stops counting a tag's value in memory, if Postgres has all of its charges. */
export const TAG_IDLE_MS = 60 * 60_000;

/** The prefix of what `due` returns as `rid` for an account whose tags are to be looked at, followed by the account's id. */
export const OF_TAGS = 'g ';

/** How often a call reads what Postgres has of its tags if that changes meanwhile. */
export const TAG_READS = 5;

/** How many values of tags the ledger counts in memory for one account. */
export const MAX_TAG_SCOPES = 100_000;

/** How many Idempotency-Keys of one account the ledger keeps. A new key replaces the oldest one whose call has ended. */
export const MAX_INTENTS = 10_000;

/** The operations for the money of calls. They alone have a second implementation, which adds allowances (money that a node holds in advance). */
export interface Calls {
  reserve(request: ReserveRequest): MaybeLater<ReserveOutcome>;
  settle(request: SettleRequest): MaybeLater<SettleOutcome>;
  release(request: ReleaseRequest): MaybeLater<ReleaseOutcome>;
  renew(request: RenewRequest): Promise<RenewOutcome>;
  /** Returns undefined if the account does not exist. `readAccount` and `readKey` reject with LedgerUnavailable while the ledger is not ready. */
  readAccount(accountId: string): Promise<AccountState | undefined>;
  readKey(payer: Payer): Promise<KeyState | undefined>;
  /** Returns what a scope has spent and holds; undefined if the ledger does not know it. */
  readScope(accountId: string, scope: string): Promise<ScopeState | undefined>;
}

/** The operations for outbox entries, which the shipper moves to Postgres. */
export interface Outbox {
  /** Returns the oldest entries of these shards' outboxes in order, at most `limit` per shard. The map has only shards with entries. */
  readOutbox(shards: readonly number[], limit: number): Promise<ReadonlyMap<number, readonly OutboxEntry[]>>;
  /** Deletes these entries, which were read from the head of the outbox and committed to Postgres. Their reservations are deleted after CLOSED_MS. */
  trimOutbox(shard: number, entries: readonly OutboxEntry[]): Promise<void>;
  /** Returns the share of the ledger's permitted memory that the outboxes use, from 0 to 1. */
  outboxShare(): Promise<number>;
}

/** The operations that find and repair faults: lost holds, differences from Postgres, and a store that was emptied or reset to an older state. */
export interface Recovery {
  /** Returns reservations of these shards whose lease has ended: per shard at most `limit`, the oldest first. */
  due(shards: readonly number[], limit: number): Promise<readonly (Payer & { readonly rid: string })[]>;
  expire(payer: Payer, rid: string): Promise<ExpireOutcome>;
  /** Returns the names of the scopes of an account's tags that the ledger counts now. */
  listTags(accountId: string): Promise<readonly string[]>;
  /** Reads accounts of one shard, and some of their scopes by name, at one moment. Rejects with LedgerUnavailable while the ledger is not ready. */
  inspect(shard: number, accountIds: readonly string[], scopes: readonly string[]): Promise<LedgerInspection>;
  /**
   * Returns true if the store was filled from Postgres and is still the same store. A store that was restarted, promoted or emptied may
   * have an older state. The gateway does not use it until recovery has compared it with Postgres (`open`).
   */
  isReady(): Promise<boolean>;
  /** Returns how many milliseconds ago the ledger was opened, by its own clock. */
  openedAgoMs(): Promise<number>;
  /** Shuts a ledger that answers but has wrong data. It answers no operation until `open`. */
  shut(): Promise<void>;
  /** Begins recovery by marking the store. Returns the mark, which `open` needs. */
  begin(): Promise<string>;
  /**
   * Writes the accounts that the ledger lacks or has in an older state, with only the snapshot's open holds. An account keeps its money if
   * its `seq` in the ledger is not lower than in the snapshot. Its status and its missing or outdated keys are still written. The index
   * entries of all keys are written, too.
   */
  restore(accounts: readonly AccountSnapshot[]): Promise<void>;
  /**
   * Ends recovery: the ledger answers from now on. Returns `lost` if the ledger has lost what was written since `begin`; the ledger then
   * stays shut. Without the mark `begun` that `begin` returned, as in tests, the ledger opens without that check.
   */
  open(begun?: string): Promise<'opened' | 'lost'>;
}

/** The ledger that all nodes share. It joins the interfaces `Calls`, `Outbox` and `Recovery`, and adds the operations for accounts, keys and sandboxes. */
export interface Ledger extends Calls, Outbox, Recovery {
  reserve(request: ReserveRequest): Promise<ReserveOutcome>;
  settle(request: SettleRequest): Promise<SettleOutcome>;
  release(request: ReleaseRequest): Promise<ReleaseOutcome>;
  findKey(hash: string): Promise<FindKeyOutcome>;
  /** Counts a call that was refused without a hold in the key's per-minute limit of calls. */
  countRefused(payer: Payer): Promise<CountOutcome>;
  /** Counts a request to the gateway's own API against a limit of `perMinute` per minute for the key. */
  countRequest(payer: Payer, perMinute: number): Promise<CountOutcome>;
  roll(request: RollRequest): Promise<RollOutcome>;
  credit(request: CreditRequest): Promise<CreditOutcome>;
  /** Creates the account or changes its status. `setAccount` and `setKey` reject with LedgerUnavailable while the ledger is not ready. */
  setAccount(accountId: string, status: AccountStatus): Promise<void>;
  setKey(request: SetKeyRequest): Promise<void>;
  /** Creates a team or a member, or changes its limits or those of an account. Resolves when the change holds on every node. */
  setScope(request: SetScopeRequest): Promise<void>;
  close(): Promise<void>;
}
