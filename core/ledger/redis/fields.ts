import { readCalls } from '../allowances/reported-calls';
import type {
  AccountSnapshot,
  AccountState,
  ClosedEntry,
  EntryKind,
  KeySettings,
  LedgerInspection,
  OutboxEntry,
  PaidIntent,
  ScopeMoney,
  SetKeyRequest,
  TagState,
} from '../ledger';
import { spendingLimitsOf } from '../limit-fields';
import { LIMIT_WINDOWS, type Spending, type SpendingLimits, scopesOf, tagOf } from '../scopes';
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
    scopes: value['scopes'] || undefined,
    day: value['day'] ? Number(value['day']) : undefined,
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
  const parsed: Omit<KeySettings, 'rev'> = JSON.parse(settings);
  const { name, allowedModels, markup, ...others } = parsed;
  return { rev: Number(rev), name, allowedModels, markup, ...others };
}

/** Returns the settings that an operator chose for an API key, as alternating fields and values of its hash in Redis. An empty value means no field. */
export function settingFields(key: SetKeyRequest): readonly string[] {
  const { status, settings } = key;
  const { rev } = settings;
  const others = { status, rev: String(rev), settings: writeSettings(settings), scopes: scopesOf(settings) };
  const { callsPerMinute: calls = '', tokensPerMinute: tokens = '' } = key;
  const limits = { limits: writeLimits(spendingLimitsOf(key)), calls: String(calls), tokens: String(tokens) };
  return Object.entries({ ...others, ...limits }).flat();
}

/** Returns the limits of a scope that is no key, as a list of alternating fields and values of its hash. An empty value means no field. */
export function limitFields(rev: number, name: string, limits: SpendingLimits): readonly string[] {
  return ['rev', String(rev), 'name', name, 'limits', writeLimits(limits)];
}

function limitTexts(limits: SpendingLimits): readonly string[] {
  return LIMIT_WINDOWS.map((window) => limits[window]?.toString() ?? '-');
}

/** Writes the limits that each value of a tag's name has, for tags.lua. */
export function writeNameLimits(limits: SpendingLimits, isLimited = false): string {
  return isLimited ? limitTexts(limits).join(',') : 'off';
}

/** Describes what Postgres has of tags' values as JSON for reserve.lua: `moment`, and an object by the name of each scope. */
export function describeTags(moment: string, tags: readonly TagState[]): string {
  const known = tags.map(({ scope, rev, limits, spending }) => {
    const [, spent, , windows] = counterFields(spending);
    return [scope, { rev: String(rev), limits: writeLimits(limits), spent, windows }];
  });
  return JSON.stringify({ moment, ...Object.fromEntries(known) });
}

/** Writes limits for scopes.lua: in all, per day, per week and per month; `-` for none, and an empty text if there is none at all. */
export function writeLimits(limits: SpendingLimits): string {
  const texts = limitTexts(limits);
  return texts.every((text) => text === '-') ? '' : texts.join(' ');
}

export function parseLimits(text: Missing<string>): SpendingLimits {
  const texts = (text || '').split(' ');
  return Object.fromEntries(
    LIMIT_WINDOWS.flatMap((window, at) => (/^\d/.test(texts[at] ?? '') ? [[window, BigInt(texts[at] ?? 0)]] : [])),
  );
}

/** Returns what a scope has spent, as a list of alternating fields and values of its hash in Redis. */
function counterFields({ day, spentE8 }: Spending): readonly string[] {
  return ['spent', String(spentE8.total), 'windows', `${day} ${spentE8.day} ${spentE8.week} ${spentE8.month}`];
}

export function parseSpending(spent: Missing<string>, windows: Missing<string>): Spending {
  const [day, ofDay = 0n, ofWeek = 0n, ofMonth = 0n] = (windows || '0 0 0 0').split(' ').map(BigInt);
  return { day: Number(day), spentE8: { total: BigInt(spent || 0), day: ofDay, week: ofWeek, month: ofMonth } };
}

/** Describes an account as JSON for restore.lua. All values are strings, because numbers in Lua would lose digits. */
export function describeSnapshot(account: AccountSnapshot): string {
  const { accountId, keys, scopes, spending } = account;
  const { holds, heldE8, heldByScope } = coverHolds(account);
  const describe = (name: string, rev: number, settings: readonly string[], spent: Spending) => ({
    ...{ name, rev: String(rev), settings, counters: counterFields(spent) },
    held: (heldByScope.get(name) ?? 0n).toString(),
  });
  const tags = scopes.filter(({ scope }) => tagOf(scope) !== undefined);
  const own = scopes.find(({ scope }) => scope === `a:${accountId}`) ?? { rev: 0, name: '', limits: {} };
  return JSON.stringify({
    status: account.status,
    available: (account.postedE8 - heldE8).toString(),
    held: heldE8.toString(),
    posted: account.postedE8.toString(),
    seq: String(account.seq),
    scopes: [
      describe(`a:${accountId}`, own.rev, limitFields(own.rev, own.name, own.limits), spending),
      ...scopes
        .filter(({ scope }) => scope !== `a:${accountId}` && tagOf(scope) === undefined)
        .map(({ scope, rev, name, limits, spending: spent }) =>
          describe(scope, rev, limitFields(rev, name, limits), spent),
        ),
      ...keys.map((key) => describe(`k:${key.keyId}`, key.settings.rev, settingFields(key), key.spending)),
    ],
    tags: tags
      .filter(({ scope }) => !scope.includes('='))
      .map(({ scope, rev, limits, isLimited }) => {
        return { name: tagOf(scope), rev: String(rev), limits: writeNameLimits(limits, isLimited) };
      }),
    values: tags
      .filter(({ scope }) => scope.includes('='))
      .map(({ scope, rev, limits }) => ({ name: scope, rev: String(rev), settings: limitFields(rev, '', limits) })),
    closed: account.closed.map(describeClosed),
    open: holds.map(({ rid, keyId, scopes: its, amountE8 }) => ({
      rid,
      key: keyId,
      scopes: its,
      amount: amountE8.toString(),
    })),
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
  readonly scopes: Record<string, Missing<string>[]>;
  /** The open holds by reservation id. Without holds this is `{}`, because Lua cannot tell an empty list from an empty object. */
  readonly holds: Record<string, [string, string, string, string, string, boolean, string]>;
}

/** Parses the answer of inspect.lua. */
export function readInspection(json: string): LedgerInspection {
  const { now, accounts, scopes, holds } = JSON.parse(json) as Seen;
  return {
    nowMs: Number(now),
    accounts: new Map(Object.entries(accounts).flatMap(([id, values]) => pair(id, readAccount(values)))),
    scopes: new Map(Object.entries(scopes).flatMap(([name, values]) => pair(name, readMoney(values)))),
    holds: Object.values(holds).map(([rid, accountId, keyId, amount, deadline, ofCall, others]) => ({
      rid,
      accountId,
      keyId,
      ofCall,
      scopes: others,
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

function readMoney([spent, held, limits]: Missing<string>[]): ScopeMoney | undefined {
  if (!spent && !held) return undefined;
  return { spentE8: BigInt(spent || 0), heldE8: BigInt(held || 0), limitE8: parseLimits(limits ?? null).total };
}
