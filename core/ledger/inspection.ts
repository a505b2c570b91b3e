import type { AccountState, Payer } from './payer';

/** A consistent view of some accounts of one shard: all of it is from one moment. */
export interface Inspection {
  /** The time on the ledger's own clock, which also judges deadlines. */
  readonly nowMs: number;
  readonly accounts: ReadonlyMap<string, AccountState>;
  readonly keys: ReadonlyMap<string, KeyMoney>;
  /** All open holds of these accounts, of any key. */
  readonly holds: readonly SeenHold[];
}

export interface KeyMoney {
  readonly spentE8: bigint;
  readonly heldE8: bigint;
  readonly limitE8?: bigint | undefined;
}

export interface SeenHold extends Payer {
  readonly rid: string;
  readonly amountE8: bigint;
  /** undefined for a hold without a deadline. */
  readonly deadlineMs: number | undefined;
  /** Whether a call took the hold. A call's hold has a record for its expiry, a sandbox's has none. */
  readonly ofCall: boolean;
}

type Missing<T> = T | false | null;

interface Seen {
  readonly now: string;
  readonly accounts: Record<string, Missing<string>[]>;
  readonly keys: Record<string, Missing<string>[]>;
  /** The holds. Lua writes an empty list as an object. */
  readonly holds: Record<string, [string, string, string, string, string, boolean]>;
}

/** Reads the answer of inspect.lua. */
export function readInspection(json: string): Inspection {
  const { now, accounts, keys, holds } = JSON.parse(json) as Seen;
  return {
    nowMs: Number(now),
    accounts: new Map(Object.entries(accounts).flatMap(([id, values]) => pair(id, readAccount(values)))),
    keys: new Map(Object.entries(keys).flatMap(([id, values]) => pair(id, readKey(values)))),
    holds: Object.values(holds).map(([rid, accountId, keyId, amount, deadline, ofCall]) => ({
      rid,
      accountId,
      keyId,
      ofCall,
      amountE8: BigInt(amount),
      deadlineMs: deadline === 'inf' ? undefined : Number(deadline),
    })),
  };
}

function pair<T>(id: string, value: T | undefined): [string, T][] {
  return value === undefined ? [] : [[id, value]];
}

function readAccount([status, available, held, posted, seq]: Missing<string>[]): AccountState | undefined {
  if (!status || !available || !held || !posted || !seq) return undefined;
  return {
    status: status as AccountState['status'],
    availableE8: BigInt(available),
    heldE8: BigInt(held),
    postedE8: BigInt(posted),
    seq: Number(seq),
  };
}

function readKey([spent, held, limit]: Missing<string>[]): KeyMoney | undefined {
  if (!spent || !held) return undefined;
  return { spentE8: BigInt(spent), heldE8: BigInt(held), limitE8: limit ? BigInt(limit) : undefined };
}
