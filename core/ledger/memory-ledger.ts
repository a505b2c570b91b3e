import { getHeapStatistics } from 'node:v8';
import { newId } from '../base/ids';
import { MAX_AMOUNT_E8 } from '../base/money';
import { assertAmount, holdWithin, repeatOpen, smallest } from './amount';
import { deadHashes, secretsOf } from './key-access';
import {
  assertLimits,
  correctTokens,
  countSpending,
  type LimitCounters,
  type Mutable,
  noCounts,
  remainingOf,
  takeRate,
  takeRequest,
} from './key-limits';
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
  type SeenHold,
  type SetKeyRequest,
  type SettleOutcome,
  type SettleRequest,
  WrongPayer,
} from './ledger';
import { limitsFrom, limitsOf } from './limit-fields';
import { type CallState, type IntentCall, MemoryIntents } from './memory-intents';
import { shardOf } from './shard';
import { coverHolds, STATE_AFTER } from './snapshot';

/** The size of an outbox entry with its usage record, in bytes, measured and rounded up. */
const ENTRY_BYTES = 2_048;

export interface MemoryKey extends Mutable<KeyState>, LimitCounters {
  readonly accountId: string;
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

  constructor({ now = Date.now }: { now?: () => number } = {}) {
    this.now = now;
  }

  async findKey(hash: string): Promise<FindKeyOutcome> {
    const owner = this.#keyIndex.get(hash);
    if (owner !== undefined) return { outcome: 'found', accountId: owner.accountId, keyId: owner.keyId };
    return { outcome: this.isOpen ? 'unknown' : 'not_ready' };
  }

  async reserve(request: ReserveRequest): Promise<ReserveOutcome> {
    const { accountId, keyId, rid, amountE8, intent } = request;
    assertAmount(amountE8);
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
    const room = remainingOf(key, this.now());
    const heldE8 = holdWithin(smallest(account.availableE8, room), request);
    if (heldE8 > account.availableE8) return { outcome: 'insufficient_balance', availableE8: account.availableE8 };
    if (heldE8 > room) return { outcome: 'key_limit_exceeded', availableE8: clampToZero(room) };

    this.#hold(account, key, heldE8);
    if (request.tokens !== undefined) Object.assign(key, rate);
    const counted = key.tokensPerMinute === undefined ? undefined : request.tokens;
    this.#reservations.set(rid, {
      ...closedNow(request, 'open'),
      keyId,
      amountE8: heldE8,
      facts: request.facts ?? '',
      ...(counted === undefined ? {} : { tokens: counted }),
    });
    this.#deadlinesOf(accountId).set(rid, this.#deadlineAfter(request.lifetimeMs));
    if (intent !== undefined) this.#intents.note(accountId, rid, intent, roomForIntent);
    return { outcome: 'reserved', heldE8 };
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
      const key = this.#keyThere(request);
      if (account.status !== 'active') return { outcome: 'frozen' };
      if (moreE8 > account.availableE8) return { outcome: 'insufficient_balance', availableE8: account.availableE8 };
      const room = remainingOf(key, this.now());
      if (moreE8 > room) return { outcome: 'key_limit_exceeded', availableE8: clampToZero(room) };
      this.#hold(account, key, moreE8);
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

    const hold = first?.amountE8 ?? 0n;
    const moreE8 = following === undefined ? next.amountE8 : 0n;
    const account = this.#accountOf(accountId);
    const key = this.#keyThere(request);
    if (following === undefined && account.status !== 'active') return { outcome: 'frozen' };
    const leftE8 = account.availableE8 + hold - costE8;
    if (moreE8 > leftE8) return { outcome: 'insufficient_balance', availableE8: clampToZero(leftE8) };
    const roomE8 = remainingOf(key, this.now()) + hold - costE8;
    if (moreE8 > roomE8) return { outcome: 'key_limit_exceeded', availableE8: clampToZero(roomE8) };

    if (first !== undefined) this.#charge(request, first);
    if (following === undefined) {
      this.#hold(account, key, moreE8);
      this.#reservations.set(next.rid, { ...closedNow({ accountId, keyId }, 'open'), amountE8: moreE8 });
      this.#deadlinesOf(accountId).set(next.rid, Number.POSITIVE_INFINITY);
    }
    return { outcome: 'rolled', chargedE8: costE8, shortfallE8: 0n };
  }

  async expire(payer: Payer, rid: string): Promise<ExpireOutcome> {
    if (!this.isOpen) return { outcome: 'not_ready' };
    const reservation = this.#find(payer, rid);
    if (reservation?.state === 'expired') return { outcome: 'expired' };
    if (reservation?.state !== 'open') return { outcome: 'not_due' };
    const deadline = this.#deadlinesOf(payer.accountId).get(rid);
    if (deadline === undefined || deadline > this.now()) return { outcome: 'not_due' };
    this.#close(payer, rid, reservation, 'expire', reservation.facts);
    return { outcome: 'expired' };
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
  }

  async setKey(request: SetKeyRequest): Promise<void> {
    const { accountId, keyId, status, settings } = request;
    assertLimits(request);
    this.assertOpen();
    const key = this.keys.get(keyId);
    const before = key?.settings.access;
    const limits = limitsOf(request);
    if (key === undefined) {
      const nothing = { spentE8: 0n, heldE8: 0n, ...noCounts() };
      this.keys.set(keyId, { accountId, status, ...limits, settings, ...nothing });
    } else {
      if (key.accountId !== accountId) throw new WrongPayer(`${keyId} belongs to another account or key`);
      if (key.settings.rev > settings.rev) return;
      Object.assign(key, { status, ...limits, settings });
    }
    for (const each of deadHashes(request, before)) this.#keyIndex.delete(each);
    for (const each of secretsOf(request)) this.#keyIndex.set(each.hash, { accountId, keyId });
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
    const { status, spentE8, heldE8, settings } = key;
    return { status, spentE8, heldE8, settings, ...limitsFrom((_, name) => key[name]) };
  }

  async due(shards: readonly number[], limit: number): Promise<readonly (Payer & { readonly rid: string })[]> {
    const now = this.now();
    const rids = shards.flatMap((shard) =>
      [...(this.#deadlines.get(shard) ?? [])]
        .filter(([, deadline]) => deadline <= now)
        .sort(([, first], [, second]) => first - second)
        .slice(0, limit),
    );
    return rids.flatMap(([rid]) => {
      const { accountId, keyId } = this.#reservations.get(rid) ?? {};
      return accountId !== undefined && keyId !== undefined ? [{ rid, accountId, keyId }] : [];
    });
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

  async inspect(shard: number, accountIds: readonly string[], keyIds: readonly string[]): Promise<LedgerInspection> {
    this.assertOpen();
    const wanted = new Set(accountIds);
    const deadlines = this.#deadlines.get(shard);
    const holds = [...this.#reservations].flatMap(([rid, each]): SeenHold[] => {
      const { accountId, keyId, amountE8, state, facts } = each;
      if (state !== 'open' || keyId === undefined || !wanted.has(accountId)) return [];
      return [{ rid, accountId, keyId, amountE8, deadlineMs: deadlines?.get(rid), ofCall: facts !== '' }];
    });
    return {
      nowMs: this.now(),
      accounts: copies(this.accounts, accountIds),
      keys: copies(this.keys, keyIds),
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

  /** Returns Infinity: this ledger starts with its process, so no other process can have settlements for it. */
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
      reservations: this.#reservations,
      deadlines: new Map([...this.#deadlines.values()].flatMap((each) => [...each])),
      outbox: [...this.#outboxes.values()].flat(),
      intents: this.#intents.snapshot(),
    };
  }

  #hold(account: Mutable<AccountState>, key: MemoryKey, amountE8: bigint): void {
    account.availableE8 -= amountE8;
    account.heldE8 += amountE8;
    key.heldE8 += amountE8;
  }

  #deadlineAfter(lifetimeMs: number | undefined): number {
    return lifetimeMs === undefined ? Number.POSITIVE_INFINITY : this.now() + lifetimeMs;
  }

  #restore(snapshot: AccountSnapshot): void {
    const { accountId, status, postedE8, seq, keys, closed } = snapshot;
    const { holds, heldE8, heldByKey } = coverHolds(snapshot);
    const account = this.accounts.get(accountId);
    const behind = account === undefined || account.seq < seq;
    for (const key of keys) {
      const { keyId, settings, spentE8 } = key;
      const there = this.keys.get(keyId);
      const decided = { status: key.status, ...limitsOf(key), settings };
      if (behind || there === undefined) {
        const keyHeldE8 = behind ? (heldByKey.get(keyId) ?? 0n) : 0n;
        this.keys.set(keyId, {
          accountId,
          ...decided,
          spentE8,
          heldE8: keyHeldE8,
          ...noCounts(),
          ...key.windows,
        });
      } else if (there.settings.rev < settings.rev) Object.assign(there, decided);
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
    for (const { rid, keyId, amountE8 } of holds) {
      this.#forgetAt.delete(rid);
      this.#reservations.set(rid, { ...closedNow({ accountId, keyId }, 'open'), amountE8 });
      this.#deadlinesOf(accountId).set(rid, Number.POSITIVE_INFINITY);
    }
    this.accounts.set(accountId, { status, availableE8: postedE8 - heldE8, heldE8, postedE8, seq });
  }

  /** Returns a new open hold of 0 for a settle that comes after its hold was lost. Returns undefined if the settle is not late or its payer is unknown. */
  #lost(request: SettleRequest): Reservation | undefined {
    if (request.isLate !== true || !this.accounts.has(request.accountId)) return undefined;
    return this.keyOf(request) === undefined ? undefined : closedNow(request, 'open');
  }

  /** Returns the amount to charge: the cost. Beyond the hold, it charges at most the available balance and what the key's limits leave. */
  protected affordable(request: SettleRequest, holdE8: bigint): bigint {
    const { accountId, costE8 } = request;
    if (costE8 <= holdE8) return costE8;
    const room = clampToZero(remainingOf(this.#keyThere(request), this.now()));
    return holdE8 + smallest(costE8 - holdE8, this.#accountOf(accountId).availableE8, room);
  }

  /** Charges a reservation. `mayCharge` is false for a late settle if another call owns its Idempotency-Key. */
  #charge(request: SettleRequest, reservation: Reservation, mayCharge = true): void {
    const { rid, costE8, record } = request;
    const account = this.#accountOf(request.accountId);
    const key = this.#keyThere(request);
    const charge = mayCharge ? this.affordable(request, reservation.amountE8) : 0n;
    reservation.chargedE8 = charge;
    reservation.shortfallE8 = costE8 - charge;
    account.availableE8 -= charge;
    account.postedE8 -= charge;
    key.spentE8 += charge;
    countSpending(key, charge, this.now());
    correctTokens(key, reservation.tokens, request.tokens);
    this.#close(request, rid, reservation, 'charge', record);
  }

  /** Returns the hold to the balance and writes the closing entry. The caller has already deducted the charge. */
  #close(payer: Payer, rid: string, reservation: Reservation, kind: EntryKind, record: string): void {
    const account = this.#accountOf(payer.accountId);
    account.availableE8 += reservation.amountE8;
    account.heldE8 -= reservation.amountE8;
    account.seq += 1;
    this.#keyThere(payer).heldE8 -= reservation.amountE8;
    this.#deadlinesOf(payer.accountId).delete(rid);
    reservation.state = STATE_AFTER[kind];
    const { chargedE8, shortfallE8 } = reservation;
    this.#reservations.set(rid, { ...closedNow(payer, reservation.state), chargedE8, shortfallE8 });
    const { accountId, keyId } = payer;
    this.append({ kind, accountId, keyId, rid, amountE8: -chargedE8, shortfallE8, record: record || undefined });
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
    const shard = shardOf(accountId);
    const deadlines = this.#deadlines.get(shard) ?? new Map<string, number>();
    this.#deadlines.set(shard, deadlines);
    return deadlines;
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
  readonly reservations: ReadonlyMap<string, Readonly<Reservation>>;
  readonly deadlines: ReadonlyMap<string, number>;
  readonly outbox: readonly OutboxEntry[];
  readonly intents: ReadonlyMap<string, ReadonlyMap<string, IntentCall>>;
}

function closedNow(payer: { accountId: string; keyId: string | undefined }, state: Reservation['state']): Reservation {
  const { accountId, keyId } = payer;
  return { accountId, keyId, state, amountE8: 0n, chargedE8: 0n, shortfallE8: 0n, facts: '' };
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
