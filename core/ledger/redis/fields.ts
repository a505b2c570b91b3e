import { readCalls } from '../allowances/reported-calls';
import type {
  AccountSnapshot,
  AccountState,
  ClosedEntry,
  EntryKind,
  KeyMoney,
  KeySettings,
  KeySnapshot,
  LedgerInspection,
  OutboxEntry,
  PaidIntent,
  SetKeyRequest,
} from '../ledger';
import { limitTexts } from '../limit-fields';
import { coverHolds, STATE_AFTER } from '../snapshot';

/** A stream entry as XRANGE returns it: its id, then a list of alternating fields and values. */
export type StreamEntry = [id: string, fields: string[]];

/** Reads an outbox entry from the fields that the scripts write with XADD. */
export function readEntry([id, fields]: StreamEntry): OutboxEntry {
  const value: Record<string, string | undefined> = {};
  for (let index = 0; index < fields.length; index += 2) value[fields[index] ?? ''] = fields[index + 1];
  return {
    id,
    kind: value['kind'] as EntryKind,
    accountId: value['account'] ?? '',
    keyId: value['key'] || undefined,
    rid: value['rid'] ?? '',
    seq: Number(value['seq']),
    amountE8: BigInt(value['amount'] ?? ''),
    postedE8: BigInt(value['posted'] ?? ''),
    shortfallE8: BigInt(value['shortfall'] ?? ''),
    record: value['record'] || undefined,
    ...(value['calls'] === undefined ? {} : { calls: readCalls(value['calls'], value['shortfalls']) }),
  };
}

/** Returns the smallest Redis stream id above `id`. */
export function firstIdAfter(id: string): string {
  const [time, sequence] = id.split('-');
  return `${time}-${BigInt(sequence ?? '0') + 1n}`;
}

function writeSettings({ rev: _rev, ...settings }: KeySettings): string {
  return JSON.stringify(settings);
}

export function readSettings(rev: string, settings: string): KeySettings {
  const { name, allowedModels, markup, access } = JSON.parse(settings) as Omit<KeySettings, 'rev'>;
  return { rev: Number(rev), name, allowedModels, markup, ...(access !== undefined && { access }) };
}

/** Returns the settings that an operator chose for an API key, as alternating fields and values of its hash in Redis. An empty value means no field. */
export function settingFields(key: SetKeyRequest): readonly string[] {
  const { status, settings } = key;
  const limits = limitTexts(key);
  const hasCaps = limits.some(([field, text]) => field !== 'limit' && text !== '');
  const others = { status, rev: String(settings.rev), settings: writeSettings(settings), caps: hasCaps ? '1' : '' };
  return [...Object.entries(others), ...limits].flat();
}

/** Returns what an API key has spent, as a list of alternating fields and values of its hash in Redis. */
function counterFields({ spentE8, windows }: KeySnapshot): readonly string[] {
  return [
    'spent',
    spentE8.toString(),
    ...(windows === undefined ? [] : ['day', String(windows.day), 'day_spent', windows.daySpentE8.toString()]),
    ...(windows === undefined ? [] : ['month', String(windows.month), 'month_spent', windows.monthSpentE8.toString()]),
  ];
}

/** Describes an account as JSON for restore.lua. All values are strings, because numbers in Lua would lose digits. */
export function describeSnapshot(account: AccountSnapshot): string {
  const { holds, heldE8, heldByKey } = coverHolds(account);
  return JSON.stringify({
    status: account.status,
    available: (account.postedE8 - heldE8).toString(),
    held: heldE8.toString(),
    posted: account.postedE8.toString(),
    seq: String(account.seq),
    keys: account.keys.map((key) => ({
      id: key.keyId,
      held: (heldByKey.get(key.keyId) ?? 0n).toString(),
      rev: String(key.settings.rev),
      settings: settingFields(key),
      counters: counterFields(key),
    })),
    closed: account.closed.map(describeClosed),
    open: holds.map(({ rid, keyId, amountE8 }) => ({ rid, key: keyId, amount: amountE8.toString() })),
  });
}

function describeClosed(entry: ClosedEntry): object {
  return {
    rid: entry.rid,
    state: STATE_AFTER[entry.kind],
    key: entry.keyId ?? '',
    charged: (-entry.amountE8).toString(),
    shortfall: entry.shortfallE8.toString(),
    ...(entry.intent === undefined ? {} : { intent: describeIntent(entry.intent) }),
  };
}

function describeIntent({ key, body, requestId }: PaidIntent): object {
  return { key, body, request: requestId };
}

type Missing<T> = T | false | null;

interface Seen {
  readonly now: string;
  readonly accounts: Record<string, Missing<string>[]>;
  readonly keys: Record<string, Missing<string>[]>;
  /** The holds by reservation. An object even if there are none, because Lua writes an empty list as `{}`. */
  readonly holds: Record<string, [string, string, string, string, string, boolean]>;
}

/** Parses the answer of inspect.lua. */
export function readInspection(json: string): LedgerInspection {
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
