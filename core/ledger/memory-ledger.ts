import { getHeapStatistics } from 'node:v8';
import { getOrInsert } from '../base/collections';
import { newId } from '../base/ids';
import { MAX_AMOUNT_E8 } from '../base/money';
import { assertAmount, assertLimits, holdWithin, repeatOpen, smallest } from './amount';
import { deadHashes, secretsOf } from './key-access';
import {
  type AccountSnapshot,
  type AccountState,
  type AccountStatus,
  CLOSED_MS,
  type CountOutcome,
  type CreditOutcome,
  type CreditRequest,
  type EntryKind,
  type ExpireOutcome,
  type FindKeyOutcome,
  INTENT_MS,
  type KeyState,
  type Ledger,
  type LedgerInspection,
  LedgerUnavailable,
  type MoneyMissing,
  OF_TAGS,
  type OutboxEntry,
  type Payer,
  type ReleaseOutcome,
  type ReleaseRequest,
  type RenewOutcome,
  type RenewRequest,
  type ReserveOutcome,
  type ReserveRequest,
  type RollOutcome,
  type RollRequest,
  type ScopeMoney,
  type ScopeState,
  type SeenHold,
  type SetKeyRequest,
  type SetScopeRequest,
  type SettleOutcome,
  type SettleRequest,
  TAG_READS,
  type TagReader,
  WrongPayer,
} from './ledger';
import { type KeyLimits, limitsFrom, limitsOf, spendingLimitsOf } from './limit-fields';
import { type CallState, type IntentCall, MemoryIntents } from './memory-intents';
import {
  type AccountTags,
  type KnownTags,
  MemoryTags,
  NO_TAG_READER,
  type SetTag,
  type TagSettings,
  type UnknownTags,
} from './memory-tags';
import { correctTokens, FULL_BUCKETS, type RateBuckets, takeRate, takeRequest } from './rates';
import {
  chainOf,
  dayNumberOf,
  joinScopes,
  limitsOfValue,
  newScope,
  parseScope,
  roomOf,
  type Scope,
  type Spending,
  scopesOf,
  spend,
  tagOf,
  tagsIn,
} from './scopes';
import { shardOf } from './shard';
import { coverHolds, STATE_AFTER } from './snapshot';

/** The size of an outbox entry with its usage record, in bytes, measured and rounded up. */
const ENTRY_BYTES = 2_048;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** An API key without what its scope counts. */
export interface MemoryKey extends Pick<Mutable<KeyState>, 'status' | 'settings'>, KeyLimits, RateBuckets {
  readonly accountId: string;
}

/** A scope with its account, and the number of the last change of its limits; undefined if they were never set. */
interface MemoryScope extends Scope {
  readonly accountId: string;
  rev?: number | undefined;
  name?: string | undefined;
}

/** A hold that a roll settles before it takes the next one: its scopes, its amount and its cost. */
export interface SettledHold {
  readonly chain: readonly string[];
  readonly holdE8: bigint;
  readonly costE8: bigint;
}

/** An open reservation; or what the ledger keeps of a closed reservation, of a credit, or of a tombstone (an id that may not be reserved any more). */
interface Reservation {
  readonly accountId: string;
  /** The API key of the reservation; undefined for a credit. */
  readonly keyId: string | undefined;
  state: 'open' | 'settled' | 'released' | 'expired' | 'tombstoned' | 'credited';
  amountE8: bigint;
  chargedE8: bigint;
  shortfallE8: bigint;
  /** What the process knows of the call, as JSON; empty for a sandbox. */
  readonly facts: string;
  /** The scopes of the hold beside its account and key, separated by spaces. */
  readonly scopes: string;
  /** How many tokens the call was expected to use; undefined if no limit counts them. */
  readonly tokens?: number;
}

/**
 * The ledger in this process. It is the reference model for the Redis scripts, and the ledger of a gateway without Redis. Each operation
 * runs within one turn of the event loop, so no other operation interferes. Its memory holds only accounts, API keys, open reservations,
 * uncommitted entries and recently closed reservations. It keeps a closed reservation until CLOSED_MS after the commit of the entry, as
 * Redis does.
 */
export class MemoryLedger implements Ledger {
  protected readonly now: () => number;
  protected isOpen = false;
  #begun: string | undefined;
  protected readonly accounts = new Map<string, Mutable<AccountState>>();
  protected readonly keys = new Map<string, MemoryKey>();
  /** The scopes of all accounts by their names (see scopes.ts): accounts, teams, members and API keys. */
  protected readonly scopes = new Map<string, MemoryScope>();
  readonly #keyIndex = new Map<string, Payer>();
  readonly #reservations = new Map<string, Reservation>();
  /** Deadlines of open reservations by shard; Infinity for a hold without a deadline. */
  readonly #deadlines = new Map<number, Map<string, number>>();
  readonly #outboxes = new Map<number, OutboxEntry[]>();
  #entries = 0;
  /** The time at which the ledger forgets each closed reservation, soonest first. */
  readonly #forgetAt = new Map<string, number>();
  readonly #intents = new MemoryIntents(
    (rid) => this.#callOf(rid),
    () => this.now(),
  );

  readonly #readTags: TagReader;
  readonly #tags: MemoryTags;

  constructor({ now = Date.now, readTags = NO_TAG_READER, ...tags }: { now?: () => number } & TagSettings = {}) {
    this.now = now;
    this.#readTags = readTags;
    this.#tags = new MemoryTags(tags);
  }

  async findKey(hash: string): Promise<FindKeyOutcome> {
    const owner = this.#keyIndex.get(hash);
    if (owner !== undefined) return { outcome: 'found', accountId: owner.accountId, keyId: owner.keyId };
    return { outcome: this.isOpen ? 'unknown' : 'not_ready' };
  }

  async reserve(request: ReserveRequest): Promise<ReserveOutcome> {
    assertAmount(request.amountE8);
    let answer = this.#reserve(request);
    for (let times = 0; answer.outcome === 'unknown_tags'; times += 1) {
      if (times === TAG_READS) throw new LedgerUnavailable('the limits of tags change too often');
      answer = this.#reserve(request, { moment: answer.moment, tags: await this.#readTags(answer.scopes) });
    }
    return answer;
  }

  /** Reserves, or answers which tags' values the ledger does not have. `known` is what Postgres has of them. */
  #reserve(request: ReserveRequest, known?: KnownTags): ReserveOutcome | UnknownTags {
    const { accountId, keyId, rid, intent } = request;
    if (!this.isOpen) return { outcome: 'not_ready' };
    const before = this.#find(request, rid);
    if (before !== undefined) return repeatReserve(before, request);

    const account = this.accounts.get(accountId);
    if (account === undefined) return { outcome: 'unknown_account' };
    const key = this.keyOf(request);
    if (key === undefined) return { outcome: 'unknown_key' };
    if (key.status !== 'active') return { outcome: 'revoked' };
    if (account.status !== 'active') return { outcome: 'frozen' };
    if (key.settings.rev > request.keyRev) return { outcome: 'stale_key', settings: key.settings };
    const repeated = intent && this.#intents.refuse(accountId, intent);
    if (repeated !== undefined) return repeated;
    const roomForIntent = intent && this.#intents.findRoom(accountId, intent.key);
    if (intent !== undefined && roomForIntent === undefined) return { outcome: 'too_many_intents' };
    const { waitMs, callWaitMs: _, ...rate } = takeRate(key, request.tokens ?? 0, this.now());
    if (request.tokens !== undefined && waitMs > 0) return { outcome: 'rate_limited', retryAfterMs: waitMs };
    const found = this.#findTags(request, known);
    if (found.outcome !== undefined) return found;
    const { tags, unknown } = found;
    const scopes = joinScopes(scopesOf(key.settings), ...tags);
    const chain = chainOf(accountId, scopes, keyId);
    const leftE8 = smallest(account.availableE8, this.roomIn(chain));
    const heldE8 = holdWithin(leftE8, request);
    if (heldE8 > leftE8) {
      const missing = this.#missing(account.availableE8, chain, heldE8);
      for (const scope of unknown) this.scopes.delete(scope);
      return missing;
    }

    this.book(chain, heldE8);
    this.#tags.use(accountId, tags, 1, this.now());
    if (unknown.length > 0) this.#tags.of(accountId).lookAt ??= this.now();
    if (request.tokens !== undefined) Object.assign(key, rate);
    const counted = key.tokensPerMinute === undefined ? undefined : request.tokens;
    this.#reservations.set(rid, {
      ...closedNow(request, 'open'),
      keyId,
      amountE8: heldE8,
      facts: request.facts ?? '',
      scopes,
      ...(counted === undefined ? {} : { tokens: counted }),
    });
    this.#deadlinesOf(accountId).set(rid, this.#deadlineAfter(request.lifetimeMs));
    if (intent !== undefined) this.#intents.note(accountId, rid, intent, roomForIntent);
    return { outcome: 'reserved', heldE8 };
  }

  /** Returns the scopes of a call's limited tags, with those that only `known` has, which it makes; or why the call cannot have them. */
  #findTags({ accountId, tags: given }: ReserveRequest, known: KnownTags | undefined) {
    const tags = this.#tags.limited(accountId, given);
    if (tags === undefined) return { outcome: 'too_many_limited_tags' } as const;
    const unknown = tags.filter((scope) => !this.scopes.has(scope));
    if (unknown.length === 0) return { tags, unknown, outcome: undefined };
    if (this.#tags.isFull(accountId, unknown)) return { outcome: 'too_many_tags' } as const;
    const moment = this.#tags.of(accountId).rev;
    if (known?.moment !== moment) return { outcome: 'unknown_tags', moment, scopes: unknown } as const;
    for (const { scope, ...state } of known.tags)
      if (unknown.includes(scope)) this.scopes.set(scope, { accountId, heldE8: 0n, ...state });
    return { tags, unknown, outcome: undefined };
  }

  async countRefused(payer: Payer): Promise<CountOutcome> {
    if (!this.isOpen) return { outcome: 'not_ready' };
    const key = this.keyOf(payer);
    if (key === undefined) return { outcome: 'unknown_key' };
    const { callsAtMicros, callWaitMs } = takeRate(key, 0, this.now());
    if (callWaitMs > 0) return { outcome: 'rate_limited', retryAfterMs: callWaitMs };
    key.callsAtMicros = callsAtMicros;
    return { outcome: 'counted' };
  }

  async countRequest(payer: Payer, perMinute: number): Promise<CountOutcome> {
    if (!this.isOpen) return { outcome: 'not_ready' };
    const key = this.keyOf(payer);
    if (key === undefined) return { outcome: 'unknown_key' };
    const { requestsAtMicros, waitMs } = takeRequest(key, perMinute, this.now());
    if (waitMs > 0) return { outcome: 'rate_limited', retryAfterMs: waitMs };
    key.requestsAtMicros = requestsAtMicros;
    return { outcome: 'counted' };
  }

  async settle(request: SettleRequest): Promise<SettleOutcome> {
    assertAmount(request.costE8);
    if (!this.isOpen) return { outcome: 'not_ready' };
    const there = this.#find(request, request.rid);
    const reservation = there ?? this.#lost(request);
    if (reservation === undefined) return { outcome: 'unknown_reservation' };
    if (reservation.state === 'expired') return { outcome: 'expired' };
    const mayCharge = there !== undefined || this.#intents.claim(request.accountId, request.rid, request.record);
    if (reservation.state === 'open') this.#charge(request, reservation, mayCharge);
    if (reservation.state !== 'settled') return { outcome: 'released' };
    return { outcome: 'settled', chargedE8: reservation.chargedE8, shortfallE8: reservation.shortfallE8 };
  }

  async release(request: ReleaseRequest): Promise<ReleaseOutcome> {
    const { rid } = request;
    if (!this.isOpen) return { outcome: 'not_ready' };
    const reservation = this.#find(request, rid);
    if (reservation === undefined) {
      this.#reservations.set(rid, closedNow(request, 'tombstoned'));
      this.#forgetLater(rid);
      return { outcome: 'tombstoned' };
    }
    if (reservation.state === 'open') {
      correctTokens(this.#keyThere(request), reservation.tokens, 0);
      this.#close(request, rid, reservation, 'release', request.record);
    }
    return { outcome: reservation.state as 'released' | 'tombstoned' | 'settled' | 'expired' };
  }

  async renew(request: RenewRequest): Promise<RenewOutcome> {
    const { accountId, rid, lifetimeMs, amountE8 = 0n } = request;
    assertAmount(amountE8);
    if (!this.isOpen) return { outcome: 'not_ready' };
    const reservation = this.#find(request, rid);
    if (reservation?.state !== 'open') return { outcome: 'not_open' };
    const moreE8 = amountE8 - reservation.amountE8;
    if (moreE8 > 0n) {
      const account = this.#accountOf(accountId);
      if (account.status !== 'active') return { outcome: 'frozen' };
      const chain = chainOf(accountId, reservation.scopes, request.keyId);
      if (moreE8 > smallest(account.availableE8, this.roomIn(chain)))
        return this.#missing(account.availableE8, chain, moreE8);
      this.book(chain, moreE8);
      reservation.amountE8 = amountE8;
    }
    const deadlines = this.#deadlinesOf(accountId);
    if (lifetimeMs !== undefined && deadlines.get(rid) !== Number.POSITIVE_INFINITY) {
      deadlines.set(rid, this.#deadlineAfter(lifetimeMs));
    }
    return { outcome: 'renewed' };
  }

  async roll(request: RollRequest): Promise<RollOutcome> {
    const { accountId, keyId, rid, costE8, next } = request;
    assertAmount(costE8);
    assertAmount(next.amountE8);
    if (!this.isOpen) return { outcome: 'not_ready' };
    const first = this.#find(request, rid);
    const following = this.#find(request, next.rid);
    const refusal = refuseRoll(first, following, next.amountE8);
    if (refusal !== undefined) return refusal;

    const holdE8 = first?.amountE8 ?? 0n;
    const moreE8 = following === undefined ? next.amountE8 : 0n;
    const account = this.#accountOf(accountId);
    if (following === undefined && account.status !== 'active') return { outcome: 'frozen' };
    const tags = tagsIn((first?.scopes ?? '').split(' '));
    const scopes = joinScopes(scopesOf(this.#keyThere(request).settings), ...tags);
    const chain = chainOf(accountId, scopes, keyId);
    const settled = { chain: chainOf(accountId, first?.scopes ?? '', keyId), holdE8, costE8 };
    const availableE8 = account.availableE8 + holdE8 - costE8;
    if (moreE8 > smallest(availableE8, this.roomIn(chain, settled)))
      return this.#missing(availableE8, chain, moreE8, settled);

    if (first !== undefined) this.#charge(request, first);
    if (following === undefined) {
      this.book(chain, moreE8);
      this.#tags.use(accountId, tags, 1, this.now());
      this.#reservations.set(next.rid, { ...closedNow({ accountId, keyId }, 'open'), amountE8: moreE8, scopes });
      this.#deadlinesOf(accountId).set(next.rid, Number.POSITIVE_INFINITY);
    }
    return { outcome: 'rolled', chargedE8: costE8, shortfallE8: 0n };
  }

  async expire(payer: Payer, rid: string): Promise<ExpireOutcome> {
    if (!this.isOpen) return { outcome: 'not_ready' };
    if (rid.startsWith(OF_TAGS)) return this.#leave(payer.accountId);
    const reservation = this.#find(payer, rid);
    if (reservation?.state === 'expired') return { outcome: 'expired' };
    if (reservation?.state !== 'open') return { outcome: 'not_due' };
    const deadline = this.#deadlinesOf(payer.accountId).get(rid);
    if (deadline === undefined || deadline > this.now()) return { outcome: 'not_due' };
    this.#close(payer, rid, reservation, 'expire', reservation.facts);
    return { outcome: 'expired' };
  }

  /** Stops counting tags' values that were not used for a while and whose charges Postgres has all. */
  #leave(accountId: string): ExpireOutcome {
    let waitingFromMs = Number.POSITIVE_INFINITY;
    for (const { id } of this.#outboxes.get(shardOf(accountId)) ?? [])
      waitingFromMs = Math.min(waitingFromMs, Number.parseInt(id, 10));
    for (const scope of this.#tags.leave(accountId, this.now(), waitingFromMs)) this.scopes.delete(scope);
    return { outcome: 'not_due' };
  }

  async credit({ accountId, rid, amountE8 }: CreditRequest): Promise<CreditOutcome> {
    assertAmount(amountE8, -MAX_AMOUNT_E8);
    if (!this.isOpen) return { outcome: 'not_ready' };
    const before = this.#find({ accountId, keyId: undefined }, rid);
    const account = this.accounts.get(accountId);
    if (account === undefined) return { outcome: 'unknown_account' };
    if (before !== undefined) return { outcome: 'credited', postedE8: account.postedE8 };
    if (account.postedE8 + amountE8 > MAX_AMOUNT_E8) return { outcome: 'above_maximum' };
    if (account.availableE8 + amountE8 < 0n) return { outcome: 'insufficient_balance' };

    account.availableE8 += amountE8;
    account.postedE8 += amountE8;
    account.seq += 1;
    this.#reservations.set(rid, closedNow({ accountId, keyId: undefined }, 'credited'));
    this.append({ kind: 'credit', accountId, keyId: undefined, rid, amountE8, shortfallE8: 0n, record: undefined });
    return { outcome: 'credited', postedE8: account.postedE8 };
  }

  async setAccount(accountId: string, status: AccountStatus): Promise<void> {
    this.assertOpen();
    const account = this.accounts.get(accountId);
    if (account !== undefined) account.status = status;
    else this.accounts.set(accountId, { status, availableE8: 0n, heldE8: 0n, postedE8: 0n, seq: 0 });
    this.#scopeOf(`a:${accountId}`, accountId);
  }

  async setKey(request: SetKeyRequest): Promise<void> {
    const { accountId, keyId, status, settings } = request;
    assertLimits(spendingLimitsOf(request));
    this.assertOpen();
    const key = this.keys.get(keyId);
    const before = key?.settings.access;
    const limits = limitsOf(request);
    if (key === undefined) {
      this.keys.set(keyId, { accountId, status, ...limits, settings, ...FULL_BUCKETS });
    } else {
      if (key.accountId !== accountId) throw new WrongPayer(`${keyId} belongs to another account or key`);
      if (key.settings.rev > settings.rev) return;
      Object.assign(key, { status, ...limits, settings });
    }
    this.#scopeOf(`k:${keyId}`, accountId).limits = spendingLimitsOf(limits);
    for (const each of deadHashes(request, before)) this.#keyIndex.delete(each);
    for (const each of secretsOf(request)) this.#keyIndex.set(each.hash, { accountId, keyId });
  }

  async setScope(request: SetScopeRequest): Promise<void> {
    const { accountId, scope: name, rev, limits, name: shown } = request;
    assertLimits(limits);
    this.assertOpen();
    const { kind } = parseScope(name);
    if ((kind === 'account' || kind === 'tag') && !this.accounts.has(accountId)) throw new Error('unknown_account');
    if (kind === 'tag') {
      this.setTag(request);
      return;
    }
    const scope = this.#scopeOf(name, accountId);
    if (scope.accountId !== accountId) throw new WrongPayer(`${name} belongs to another account`);
    if (rev >= (scope.rev ?? 0)) Object.assign(scope, { limits, rev, name: shown });
  }

  /** Sets the limits of a tag's name or value, unless they are newer. */
  protected setTag(request: SetScopeRequest): SetTag {
    const done = request.scope.includes('=') ? this.#setValue(request) : this.#tags.setName(request);
    if (done.isSet) this.#tags.of(request.accountId).rev += 1;
    return done;
  }

  #setValue({ scope: name, rev, limits }: SetScopeRequest): SetTag {
    const scope = this.scopes.get(name);
    const isSet = scope === undefined || rev >= (scope.rev ?? 0);
    if (isSet && scope !== undefined) Object.assign(scope, { limits, rev });
    return { isSet, isNew: false };
  }

  /** Returns the names of tags of an account that have a limit, separated by spaces. */
  protected limitedTags(accountId: string): string {
    return this.#tags.namesOf(accountId);
  }

  async readAccount(accountId: string): Promise<AccountState | undefined> {
    this.assertOpen();
    const account = this.accounts.get(accountId);
    return account === undefined ? undefined : { ...account };
  }

  async readKey(payer: Payer): Promise<KeyState | undefined> {
    this.assertOpen();
    const key = this.keyOf(payer);
    if (key === undefined) return undefined;
    const { status, settings } = key;
    const { heldE8, spending } = this.#scopeOf(`k:${payer.keyId}`, payer.accountId);
    return { status, spentE8: spending.spentE8.total, heldE8, settings, ...limitsFrom((_, name) => key[name]) };
  }

  async readScope(accountId: string, name: string): Promise<ScopeState | undefined> {
    this.assertOpen();
    const scope = this.scopes.get(name);
    if (scope?.accountId !== accountId) return undefined;
    const { limits, heldE8, spending } = scope;
    return { limits, heldE8, spending };
  }

  async due(shards: readonly number[], limit: number): Promise<readonly (Payer & { readonly rid: string })[]> {
    const now = this.now();
    const rids = shards.flatMap((shard) =>
      [...(this.#deadlines.get(shard) ?? [])]
        .filter(([, deadline]) => deadline <= now)
        .sort(([, first], [, second]) => first - second)
        .slice(0, limit),
    );
    const found = rids.flatMap(([rid]) => {
      const { accountId, keyId } = this.#reservations.get(rid) ?? {};
      return accountId !== undefined && keyId !== undefined ? [{ rid, accountId, keyId }] : [];
    });
    const ofTags = this.#tags.due(now).filter((accountId) => shards.includes(shardOf(accountId)));
    return [...found, ...ofTags.map((accountId) => ({ rid: OF_TAGS + accountId, accountId, keyId: '' }))];
  }

  async readOutbox(shards: readonly number[], limit: number): Promise<ReadonlyMap<number, readonly OutboxEntry[]>> {
    const found = new Map<number, readonly OutboxEntry[]>();
    for (const shard of shards) {
      const entries = this.#outboxes.get(shard);
      if (entries !== undefined) found.set(shard, entries.slice(0, limit));
    }
    return found;
  }

  async trimOutbox(shard: number, entries: readonly OutboxEntry[]): Promise<void> {
    const trimmed = new Set(entries.map((entry) => entry.id));
    const kept = (this.#outboxes.get(shard) ?? []).filter((entry) => !trimmed.has(entry.id));
    if (kept.length > 0) this.#outboxes.set(shard, kept);
    else this.#outboxes.delete(shard);
    for (const { rid } of entries) this.#forgetLater(rid);
  }

  async listTags(accountId: string): Promise<readonly string[]> {
    this.assertOpen();
    return [...this.#tags.of(accountId).usedAt.keys()];
  }

  async inspect(shard: number, accountIds: readonly string[], scopes: readonly string[]): Promise<LedgerInspection> {
    this.assertOpen();
    const wanted = new Set(accountIds);
    const deadlines = this.#deadlines.get(shard);
    const holds = [...this.#reservations].flatMap(([rid, each]): SeenHold[] => {
      const { accountId, keyId, amountE8, state, facts, scopes: others } = each;
      if (state !== 'open' || keyId === undefined || !wanted.has(accountId)) return [];
      return [
        { rid, accountId, keyId, amountE8, deadlineMs: deadlines?.get(rid), ofCall: facts !== '', scopes: others },
      ];
    });
    return {
      nowMs: this.now(),
      accounts: copies(this.accounts, accountIds),
      scopes: new Map(scopes.flatMap((name) => this.#moneyOf(name))),
      holds,
    };
  }

  async isReady(): Promise<boolean> {
    return this.isOpen;
  }

  async outboxShare(): Promise<number> {
    let waiting = 0;
    for (const entries of this.#outboxes.values()) waiting += entries.length;
    return (waiting * ENTRY_BYTES) / getHeapStatistics().heap_size_limit;
  }

  /** Returns Infinity as the time since the ledger was opened. This ledger starts with its process, so no other process can have settlements for it. */
  async openedAgoMs(): Promise<number> {
    return Number.POSITIVE_INFINITY;
  }

  async shut(): Promise<void> {
    this.isOpen = false;
  }

  async begin(): Promise<string> {
    this.#begun = newId();
    return this.#begun;
  }

  async restore(accounts: readonly AccountSnapshot[]): Promise<void> {
    for (const snapshot of accounts) this.#restore(snapshot);
  }

  async open(begun = this.#begun): Promise<'opened' | 'lost'> {
    this.isOpen = begun === this.#begun;
    return this.isOpen ? 'opened' : 'lost';
  }

  async close(): Promise<void> {}

  /** Returns the whole state, for tests that compare it with another ledger. */
  snapshot(): MemorySnapshot {
    return {
      accounts: this.accounts,
      keys: this.keys,
      scopes: this.scopes,
      reservations: this.#reservations,
      deadlines: new Map([...this.#deadlines.values()].flatMap((each) => [...each])),
      outbox: [...this.#outboxes.values()].flat(),
      intents: this.#intents.snapshot(),
      tagsOf: (accountId) => this.#tags.of(accountId),
    };
  }

  /** Returns a scope, which is created when it is named for the first time. */
  #scopeOf(name: string, accountId: string): MemoryScope {
    const scope = this.scopes.get(name) ?? { accountId, ...newScope() };
    this.scopes.set(name, scope);
    return scope;
  }

  /** Returns the day on which a charge counts: today, or the day of the account's last charge if the clock is behind it. */
  #dayOf(accountId: string): number {
    return Math.max(dayNumberOf(this.now()), this.scopes.get(`a:${accountId}`)?.spending.day ?? 0);
  }

  /**
   * Moves money from available to held, or back if negative, and charges what was spent, in the account and in all scopes of a chain.
   * Returns the day on which the charge counts.
   */
  protected book(chain: readonly string[], heldE8: bigint, spentE8 = 0n): number | undefined {
    const accountId = parseScope(chain[0] ?? '').id;
    const account = this.#accountOf(accountId);
    account.availableE8 -= heldE8 + spentE8;
    account.heldE8 += heldE8;
    account.postedE8 -= spentE8;
    const day = this.#dayOf(accountId);
    for (const name of chain) {
      const scope = this.#scopeOf(name, accountId);
      scope.heldE8 += heldE8;
      if (spentE8 !== 0n) spend(scope, spentE8, day);
    }
    return spentE8 === 0n ? undefined : day;
  }

  /** Returns how much the limits of a scope leave; with `settled`, after a roll has settled its first hold. */
  #roomOf(name: string, settled?: SettledHold) {
    const scope = this.#limitedScope(name);
    if (scope === undefined) return roomOf(newScope(), 0);
    const room = roomOf(scope, this.#dayOf(scope.accountId));
    if (room.reached === undefined || settled?.chain.includes(name) !== true) return room;
    return { ...room, leftE8: room.leftE8 + settled.holdE8 - settled.costE8 };
  }

  /** Returns a scope with the limits that it has now; a tag's value also has those of its name. */
  #limitedScope(name: string): MemoryScope | undefined {
    const scope = this.scopes.get(name);
    if (scope === undefined || tagOf(name) === undefined) return scope;
    const ofName = this.#tags.limitsOfName(scope.accountId, name);
    return { ...scope, limits: ofName === undefined ? {} : limitsOfValue(scope.limits, ofName) };
  }

  /** Returns how much all limits of a chain leave; negative if one was lowered below what was spent. */
  protected roomIn(chain: readonly string[], settled?: SettledHold): bigint {
    return smallest(MAX_AMOUNT_E8, ...chain.map((name) => this.#roomOf(name, settled).leftE8));
  }

  /**
   * Returns the scopes of a chain that cannot cover an amount: the account if its balance cannot, and those whose limits cannot. Tags are
   * not among them, because no allowance holds their money.
   */
  protected shortIn(
    chain: readonly string[],
    availableE8: bigint,
    amountE8: bigint,
    settled?: SettledHold,
  ): readonly string[] {
    return chain.filter((name, at) => {
      if (tagOf(name) !== undefined) return false;
      const { leftE8, reached } = this.#roomOf(name, settled);
      return (at === 0 && availableE8 < amountE8) || (reached !== undefined && leftE8 < amountE8);
    });
  }

  /** Returns the answer to a hold that the balance or a limit does not cover. */
  #missing(availableE8: bigint, chain: readonly string[], amountE8: bigint, settled?: SettledHold): MoneyMissing {
    let leastE8 = availableE8 < amountE8 ? availableE8 : amountE8;
    let answer: MoneyMissing = { outcome: 'insufficient_balance', availableE8: clampToZero(availableE8) };
    for (const name of chain) {
      const { leftE8, reached } = this.#roomOf(name, settled);
      if (reached === undefined || leftE8 >= leastE8) continue;
      leastE8 = leftE8;
      answer = {
        outcome: 'limit_exceeded',
        availableE8: clampToZero(leftE8),
        limit: { ...parseScope(name), name: tagOf(name) ?? this.scopes.get(name)?.name ?? '', ...reached },
      };
    }
    return answer;
  }

  #moneyOf(name: string): [string, ScopeMoney][] {
    const scope = this.scopes.get(name);
    if (scope === undefined) return [];
    return [[name, { spentE8: scope.spending.spentE8.total, heldE8: scope.heldE8, limitE8: scope.limits.total }]];
  }

  #deadlineAfter(lifetimeMs: number | undefined): number {
    return lifetimeMs === undefined ? Number.POSITIVE_INFINITY : this.now() + lifetimeMs;
  }

  #restore(snapshot: AccountSnapshot): void {
    const { accountId, status, postedE8, seq, keys, closed } = snapshot;
    const { holds, heldE8, heldByScope } = coverHolds(snapshot);
    const account = this.accounts.get(accountId);
    const behind = account === undefined || account.seq < seq;
    const restored = (name: string, spending: Spending) => {
      if (behind || !this.scopes.has(name)) {
        const scopeHeldE8 = behind ? (heldByScope.get(name) ?? 0n) : 0n;
        this.scopes.set(name, { accountId, limits: {}, heldE8: scopeHeldE8, spending });
      }
      return this.#scopeOf(name, accountId);
    };
    restored(`a:${accountId}`, snapshot.spending);
    if (behind) for (const name of this.#tags.clear(accountId)) this.scopes.delete(name);
    for (const request of snapshot.scopes) {
      const { scope: name, rev, limits, spending, name: shown } = request;
      if (tagOf(name) !== undefined) {
        this.#restoreTag(request);
        continue;
      }
      const scope = name === `a:${accountId}` ? this.#scopeOf(name, accountId) : restored(name, spending);
      if (scope.rev === undefined || scope.rev < rev) Object.assign(scope, { limits, rev, name: shown });
    }
    for (const key of keys) {
      const { keyId, settings } = key;
      const there = this.keys.get(keyId);
      const decided = { status: key.status, ...limitsOf(key), settings };
      const scope = restored(`k:${keyId}`, key.spending);
      if (behind || there === undefined) this.keys.set(keyId, { accountId, ...decided, ...FULL_BUCKETS });
      else if (there.settings.rev < settings.rev) Object.assign(there, decided);
      scope.limits = spendingLimitsOf(this.keys.get(keyId) ?? {});
      for (const { hash } of secretsOf(key)) this.#keyIndex.set(hash, { accountId, keyId });
    }
    if (!behind) {
      account.status = status;
      return;
    }
    for (const rid of this.#deadlinesOf(accountId).keys()) {
      if (this.#reservations.get(rid)?.accountId !== accountId) continue;
      this.#reservations.delete(rid);
      this.#deadlinesOf(accountId).delete(rid);
    }
    for (const { rid, kind, keyId, amountE8, shortfallE8, intent } of closed) {
      const remembered = closedNow({ accountId, keyId }, STATE_AFTER[kind]);
      this.#reservations.set(rid, { ...remembered, chargedE8: -amountE8, shortfallE8 });
      this.#forgetLater(rid);
      if (intent !== undefined) this.#intents.keep(accountId, rid, intent);
    }
    for (const { rid, keyId, amountE8, scopes } of holds) {
      this.#forgetAt.delete(rid);
      this.#reservations.set(rid, { ...closedNow({ accountId, keyId }, 'open'), amountE8, scopes });
      this.#deadlinesOf(accountId).set(rid, Number.POSITIVE_INFINITY);
    }
    this.accounts.set(accountId, { status, availableE8: postedE8 - heldE8, heldE8, postedE8, seq });
  }

  /** Restores the limits of a tag's name, or of a value that the ledger counts. Other values come back with their next calls. */
  #restoreTag(request: SetScopeRequest): void {
    const { scope: name, rev, limits } = request;
    if (!name.includes('=')) {
      this.#tags.setName(request);
      return;
    }
    const scope = this.scopes.get(name);
    if (scope !== undefined && (scope.rev ?? 0) < rev) Object.assign(scope, { limits, rev });
  }

  /** Returns a new open hold of 0 for a settle that comes after its hold was lost. Returns undefined if the settle is not late or its payer is unknown. */
  #lost(request: SettleRequest): Reservation | undefined {
    if (request.isLate !== true || !this.accounts.has(request.accountId)) return undefined;
    const key = this.keyOf(request);
    return key && { ...closedNow(request, 'open'), scopes: scopesOf(key.settings) };
  }

  /** Returns the amount to charge: the cost. Beyond the hold, it charges at most the available balance and what the limits leave. */
  protected affordable({ accountId, keyId, costE8 }: SettleRequest, holdE8: bigint, scopes: string): bigint {
    if (costE8 <= holdE8) return costE8;
    const roomE8 = this.roomIn(chainOf(accountId, scopes, keyId));
    return holdE8 + clampToZero(smallest(costE8 - holdE8, this.#accountOf(accountId).availableE8, roomE8));
  }

  /** Charges a reservation. `mayCharge` is false for a late settle if another call owns its Idempotency-Key. */
  #charge(request: SettleRequest, reservation: Reservation, mayCharge = true): void {
    const { rid, costE8, record } = request;
    const { amountE8, scopes, tokens } = reservation;
    reservation.chargedE8 = mayCharge ? this.affordable(request, amountE8, scopes) : 0n;
    reservation.shortfallE8 = costE8 - reservation.chargedE8;
    correctTokens(this.#keyThere(request), tokens, request.tokens);
    this.#close(request, rid, reservation, 'charge', record);
  }

  /** Returns the hold to the balance, charges what the reservation cost, and writes the closing entry. */
  #close({ accountId, keyId }: Payer, rid: string, reservation: Reservation, kind: EntryKind, record: string): void {
    const { amountE8, chargedE8, shortfallE8, scopes } = reservation;
    const day = this.book(chainOf(accountId, scopes, keyId), -amountE8, chargedE8);
    this.#tags.use(accountId, tagsIn(scopes.split(' ')), -1, this.now());
    this.#accountOf(accountId).seq += 1;
    this.#deadlinesOf(accountId).delete(rid);
    reservation.state = STATE_AFTER[kind];
    this.#reservations.set(rid, { ...closedNow({ accountId, keyId }, reservation.state), chargedE8, shortfallE8 });
    this.append({
      ...{ kind, accountId, keyId, rid, amountE8: -chargedE8, shortfallE8, record: record || undefined },
      ...(kind === 'charge' && { scopes: scopes || undefined, day }),
    });
  }

  protected append(entry: Omit<OutboxEntry, 'id' | 'seq' | 'postedE8'>): string {
    const { seq, postedE8 } = this.#accountOf(entry.accountId);
    const shard = shardOf(entry.accountId);
    const outbox = this.#outboxes.get(shard) ?? [];
    this.#outboxes.set(shard, outbox);
    this.#entries += 1;
    const id = `${this.now()}-${this.#entries}`;
    outbox.push({ id, ...entry, seq, postedE8 });
    return id;
  }

  #find(payer: { accountId: string; keyId: string | undefined }, rid: string): Reservation | undefined {
    this.#forget();
    const reservation = this.#reservations.get(rid);
    if (reservation === undefined) return undefined;
    if (reservation.accountId === payer.accountId && reservation.keyId === payer.keyId) return reservation;
    throw new WrongPayer(`${rid} belongs to another account or key`);
  }

  /** Returns the state of the call that owns an Idempotency-Key, or undefined if the key may be used again. */
  #callOf(rid: string): CallState | undefined {
    const freeAt = (this.#forgetAt.get(rid) ?? Number.POSITIVE_INFINITY) - (CLOSED_MS - INTENT_MS);
    return this.now() < freeAt ? this.#reservations.get(rid) : undefined;
  }

  #forgetLater(rid: string): void {
    this.#forgetAt.delete(rid);
    this.#forgetAt.set(rid, this.now() + CLOSED_MS);
  }

  #forget(): void {
    const now = this.now();
    for (const [rid, at] of this.#forgetAt) {
      if (at > now) return;
      this.#forgetAt.delete(rid);
      this.#reservations.delete(rid);
    }
  }

  #deadlinesOf(accountId: string): Map<string, number> {
    return getOrInsert(this.#deadlines, shardOf(accountId), () => new Map<string, number>());
  }

  protected keyOf({ accountId, keyId }: Payer): MemoryKey | undefined {
    const key = this.keys.get(keyId);
    return key?.accountId === accountId ? key : undefined;
  }

  #keyThere(payer: Payer): MemoryKey {
    const key = this.keyOf(payer);
    if (key === undefined)
      throw new Error(`the key ${payer.keyId} of an open reservation does not exist in the ledger`);
    return key;
  }

  #accountOf(accountId: string): Mutable<AccountState> {
    const account = this.accounts.get(accountId);
    if (account === undefined)
      throw new Error(`the account ${accountId} of an open reservation does not exist in the ledger`);
    return account;
  }

  protected assertOpen(): void {
    if (!this.isOpen) throw new LedgerUnavailable('the ledger is being restored from Postgres');
  }
}

interface MemorySnapshot {
  readonly accounts: ReadonlyMap<string, AccountState>;
  readonly keys: ReadonlyMap<string, Readonly<MemoryKey>>;
  readonly scopes: ReadonlyMap<string, Readonly<MemoryScope>>;
  readonly reservations: ReadonlyMap<string, Readonly<Reservation>>;
  readonly deadlines: ReadonlyMap<string, number>;
  readonly outbox: readonly OutboxEntry[];
  readonly intents: ReadonlyMap<string, ReadonlyMap<string, IntentCall>>;
  tagsOf(accountId: string): AccountTags;
}

function closedNow(payer: { accountId: string; keyId: string | undefined }, state: Reservation['state']): Reservation {
  const { accountId, keyId } = payer;
  return { accountId, keyId, state, amountE8: 0n, chargedE8: 0n, shortfallE8: 0n, facts: '', scopes: '' };
}

/** Returns the outcome of a roll (closing one hold and opening the next) if the states of both reservations decide it. Otherwise returns undefined. */
function refuseRoll(
  first: Reservation | undefined,
  following: Reservation | undefined,
  amountE8: bigint,
): RollOutcome | undefined {
  if (first === undefined) return { outcome: 'unknown_reservation' };
  if (first.state === 'expired') return { outcome: 'expired' };
  if (first.state !== 'open' && first.state !== 'settled') return { outcome: 'released' };
  if (following?.state === 'tombstoned') return { outcome: 'released_before' };
  const isOther = following?.state === 'open' && following.amountE8 !== amountE8;
  if (isOther) return { outcome: 'exists_with_different_amount' };
  if (first.state === 'settled') {
    const { chargedE8, shortfallE8 } = first;
    return { outcome: following === undefined ? 'settled' : 'rolled', chargedE8, shortfallE8 };
  }
  return following === undefined || following.state === 'open' ? undefined : { outcome: 'released_before' };
}

function repeatReserve(before: Reservation, request: ReserveRequest): ReserveOutcome {
  if (before.state === 'released' || before.state === 'tombstoned') return { outcome: 'released_before' };
  if (before.state !== 'open') return { outcome: 'closed_before' };
  return repeatOpen(before.amountE8, request);
}

function copies<T extends object>(all: ReadonlyMap<string, T>, ids: readonly string[]): Map<string, T> {
  return new Map(
    ids.flatMap((id): [string, T][] => {
      const there = all.get(id);
      return there === undefined ? [] : [[id, { ...there }]];
    }),
  );
}

function clampToZero(amountE8: bigint): bigint {
  return amountE8 > 0n ? amountE8 : 0n;
}
