import { type Intent, type IntentOutcome, MAX_INTENTS, type PaidIntent } from './ledger';

/** The call that an Idempotency-Key belongs to. */
export interface IntentCall {
  readonly rid: string;
  readonly body: string;
  readonly requestId: string;
}

/** The state of a reservation and what it was charged, for the call that an Idempotency-Key belongs to. */
export interface CallState {
  readonly state: string;
  readonly chargedE8: bigint;
}

/** How a new Idempotency-Key gets room in its account's list: the old keys to drop, and the keys of open calls to move to the end as newest. */
interface Room {
  readonly dropped: readonly string[];
  readonly moved: readonly string[];
}

/** How long the ledger keeps an account's Idempotency-Keys after its last new key, in ms. This is longer than any call runs. */
const KEPT_MS = 86_400_000;

/** How many of the oldest keys are searched for one whose call is no longer open. */
const LOOKED_AT = 1_000;

const NO_ROOM_NEEDED: Room = { dropped: [], moved: [] };

/** The Idempotency-Keys of accounts in this process: the reference model that tests compare with redis/intents.lua. */
export class MemoryIntents {
  /** Idempotency-Keys by account. The accounts are in the order of their last use, oldest first. The keys of each account are in the same order. */
  readonly #accounts = new Map<string, { readonly freeAtMs: number; readonly calls: Map<string, IntentCall> }>();
  readonly #callOf: (rid: string) => CallState | undefined;
  readonly #now: () => number;

  /** `callOf` returns the state of a call, or undefined if the call's Idempotency-Key may be used again. */
  constructor(callOf: (rid: string) => CallState | undefined, now: () => number) {
    this.#callOf = callOf;
    this.#now = now;
  }

  /** Returns why a call with this intent's Idempotency-Key may not be reserved, or undefined if it may be. */
  refuse(accountId: string, intent: Intent): IntentOutcome | undefined {
    const first = this.#callsOf(accountId).get(intent.key);
    const call = first && this.#callOf(first.rid);
    if (first === undefined || call === undefined) return undefined;
    const { rid, requestId } = first;
    if (first.body !== intent.body) return { outcome: 'intent_conflict', requestId };
    if (call.state === 'open') return { outcome: 'intent_open', requestId, rid };
    return isCharged(call) ? { outcome: 'intent_charged', requestId, rid, chargedE8: call.chargedE8 } : undefined;
  }

  /**
   * Returns which Idempotency-Keys to drop or move so that the account's list has room for a new one. Returns undefined if the oldest keys
   * all belong to open calls.
   */
  findRoom(accountId: string, key: string): Room | undefined {
    const calls = this.#callsOf(accountId);
    const excess = calls.size + (calls.has(key) ? 0 : 1) - MAX_INTENTS;
    const room = { dropped: [] as string[], moved: [] as string[] };
    let looked = 0;
    for (const [oldest, { rid }] of calls) {
      looked += 1;
      if (looked > LOOKED_AT || room.dropped.length === 2) break;
      const state = this.#callOf(rid)?.state;
      if (state !== undefined && room.dropped.length >= excess) break;
      (state === 'open' ? room.moved : room.dropped).push(oldest);
    }
    return excess > 0 && room.dropped.length === 0 ? undefined : room;
  }

  note(accountId: string, rid: string, { key, body, requestId }: PaidIntent, room: Room = NO_ROOM_NEEDED): void {
    const calls = this.#callsOf(accountId);
    for (const dropped of room.dropped) calls.delete(dropped);
    for (const moved of room.moved) moveToEnd(calls, moved, calls.get(moved));
    moveToEnd(calls, key, { rid, body, requestId });
    moveToEnd(this.#accounts, accountId, { freeAtMs: this.#now() + KEPT_MS, calls });
    this.#forget();
  }

  /** Assigns to a late settle the Idempotency-Key that its usage record names. Returns false if another call, open or charged, owns that key. */
  claim(accountId: string, rid: string, record: string): boolean {
    const { routing, requestId } = (record === '' ? {} : JSON.parse(record)) as RecordWithIntent;
    if (routing?.intent === undefined) return true;
    const intent = { ...routing.intent, requestId };
    const owner = this.#callsOf(accountId).get(intent.key)?.rid;
    const call = owner === undefined ? undefined : this.#callOf(owner);
    if (owner !== rid && call !== undefined && (call.state === 'open' || isCharged(call))) return false;
    this.keep(accountId, rid, intent);
    return true;
  }

  /** Records the Idempotency-Key of an ended call, even if there is no room for it. */
  keep(accountId: string, rid: string, intent: PaidIntent): void {
    this.note(accountId, rid, intent, this.findRoom(accountId, intent.key));
  }

  /** Returns all known Idempotency-Keys by account, for tests. */
  snapshot(): ReadonlyMap<string, ReadonlyMap<string, IntentCall>> {
    return new Map([...this.#accounts].map(([accountId, { calls }]) => [accountId, calls]));
  }

  #callsOf(accountId: string): Map<string, IntentCall> {
    return this.#accounts.get(accountId)?.calls ?? new Map();
  }

  #forget(): void {
    const now = this.#now();
    for (const [accountId, { freeAtMs }] of this.#accounts) {
      if (freeAtMs > now) return;
      this.#accounts.delete(accountId);
    }
  }
}

interface RecordWithIntent {
  readonly requestId: string;
  readonly routing?: { readonly intent?: Intent };
}

function isCharged({ state, chargedE8 }: CallState): boolean {
  return state === 'settled' && chargedE8 > 0n;
}

function moveToEnd<T>(map: Map<string, T>, key: string, value: T | undefined): void {
  map.delete(key);
  if (value !== undefined) map.set(key, value);
}
