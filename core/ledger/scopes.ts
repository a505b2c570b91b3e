import { MAX_AMOUNT_E8 } from '../base/money';

/*
 * Scopes of spending in the reference model. `scopes.lua` does the same for Redis.
 *
 * A scope is anything that may have limits: an account, a team, a member, a tag or an API key. Its name in the ledger is a letter and
 * an id: `a:`, `t:`, `m:`, `g:` or `k:`. A call belongs to a chain of scopes: its account, the scopes that the key names, its tags with a
 * limit, and the key.
 *
 * The scope of a tag is named by account, name and value: `g:<account>:customer=4711`. Without the value it has limits for each value of
 * the name, and counts nothing.
 */

/** The windows of limits. Days, weeks (from Monday) and months are those of UTC, by the ledger's clock. */
export const LIMIT_WINDOWS = ['total', 'day', 'week', 'month'] as const;

export type LimitWindow = (typeof LIMIT_WINDOWS)[number];

/** Limits of spending in E8 by window. An absent window has no limit. */
export type SpendingLimits = { readonly [W in LimitWindow]?: bigint | undefined };

/** Limits as rows of Postgres have them: E8 as texts by window, because JSON has no exact large numbers. */
export type LimitTexts = { readonly [W in LimitWindow]?: string };

/** The kinds of scopes, each with the first letter of its scopes' names. */
export const SCOPE_LETTERS = { account: 'a', team: 't', member: 'm', key: 'k', tag: 'g' } as const;

export type ScopeKind = keyof typeof SCOPE_LETTERS;

export const SCOPE_KINDS = Object.keys(SCOPE_LETTERS) as readonly ScopeKind[];

/** What a scope has spent, in E8. */
export interface Spending {
  /** The day of the last charge, as the number of days since 1970. */
  readonly day: number;
  /** In all, and on that day, in its week and in its month. */
  readonly spentE8: Readonly<Record<LimitWindow, bigint>>;
}

/** A scope with its limits and its counters. */
export interface Scope {
  limits: SpendingLimits;
  heldE8: bigint;
  spending: Spending;
}

/** A limit that a hold would exceed, with the counters of its scope. */
export interface ReachedLimit {
  readonly kind: ScopeKind;
  /** The id of the account, team, member or key; of a tag what its scope's name has after the letter. */
  readonly id: string;
  /** The name with which its limits were set; empty for a key, and `customer=4711` for a tag. */
  readonly name: string;
  readonly window: LimitWindow;
  readonly limitE8: bigint;
  readonly spentE8: bigint;
  readonly heldE8: bigint;
  /** When the window ends, in ms since 1970; undefined for `total`. */
  readonly resetsAtMs: number | undefined;
}

const DAY_MS = 86_400_000;

export const NO_SPENDING: Spending = { day: 0, spentE8: { total: 0n, day: 0n, week: 0n, month: 0n } };

export function newScope(limits: SpendingLimits = {}, spending: Spending = NO_SPENDING): Scope {
  return { limits, heldE8: 0n, spending };
}

/** Returns the number of days since 1970, in UTC. */
export function dayNumberOf(ms: number): number {
  return Math.floor(ms / DAY_MS);
}

/** The team and the member that the settings of a key name. */
interface CallScopes {
  readonly teamId?: string | undefined;
  readonly memberId?: string | undefined;
}

/** Returns the team and the member to which the calls of a key belong, for its settings. It leaves out what the key does not have. */
export function ownersOf(row: { readonly teamId: string | null; readonly memberId: string | null }): CallScopes {
  const { teamId, memberId } = row;
  return { ...(teamId !== null && { teamId }), ...(memberId !== null && { memberId }) };
}

/** Returns the scopes that the ledger sums beside account and key, from the ids that a key's settings name. */
export function scopesOf({ teamId, memberId }: CallScopes): string {
  return [teamId && `t:${teamId}`, memberId && `m:${memberId}`].filter(Boolean).join(' ');
}

/** Returns when a day begins, in ms since 1970, in UTC. */
export function dayStartMs(day: number): number {
  return day * DAY_MS;
}

/** Returns the names of a call's scopes, from its account to its key. */
export function chainOf(accountId: string, scopes: string, keyId: string): readonly string[] {
  return [`a:${accountId}`, ...(scopes === '' ? [] : scopes.split(' ')), `k:${keyId}`];
}

/** Returns the kind and id that the name of a scope has. */
export function parseScope(name: string): { readonly kind: ScopeKind; readonly id: string } {
  return { kind: SCOPE_KINDS.find((kind) => SCOPE_LETTERS[kind] === name[0]) as ScopeKind, id: name.slice(2) };
}

/** Returns the name of a tag's scope. */
export function tagScope(accountId: string, tag: string): string {
  return `g:${accountId}:${tag}`;
}

/** Returns the tag that a scope's name has, for example `customer=4711` or `customer`; undefined for all other scopes. */
export function tagOf(scope: string): string | undefined {
  return scope.startsWith('g:') ? scope.slice(scope.indexOf(':', 2) + 1) : undefined;
}

/** Returns the names of the tags in a chain or list of scopes. */
export function tagsIn(scopes: readonly string[]): readonly string[] {
  return scopes.filter((scope) => tagOf(scope) !== undefined);
}

/** Returns the limits of a tag's value: its own, and where it has none, those of the name. */
export function limitsOfValue(own: SpendingLimits, ofName: SpendingLimits): SpendingLimits {
  return Object.fromEntries(LIMIT_WINDOWS.map((window) => [window, own[window] ?? ofName[window]]));
}

/** Returns the name of a tag such as `customer=4711`. */
export function nameOfTag(tag: string): string {
  const end = tag.indexOf('=');
  return end === -1 ? tag : tag.slice(0, end);
}

/** Returns the scopes whose limits bind a scope: for a tag's value those of its name too. */
export function limitingScopes(scope: string): readonly string[] {
  return tagOf(scope) === undefined || !scope.includes('=') ? [scope] : [nameOfTag(scope), scope];
}

/** Joins lists of scopes or tags, each separated by spaces. */
export function joinScopes(...lists: readonly string[]): string {
  return lists.filter((list) => list !== '').join(' ');
}

/** Returns what a scope has spent in each window that contains this day. Windows that have ended count 0. */
export function spentOn({ day: last, spentE8 }: Spending, day: number): Record<LimitWindow, bigint> {
  const { total, day: ofDay, week, month } = spentE8;
  if (last === day) return { total, day: ofDay, week, month };
  const of = (window: LimitWindow) => (startOf(window, last) === startOf(window, day) ? spentE8[window] : 0n);
  return { total, day: 0n, week: of('week'), month: of('month') };
}

/** Counts a charge. `day` is never before the day of the account's last charge, so that a window never goes back. */
export function spend(scope: Scope, amountE8: bigint, day: number): void {
  const spent = spentOn(scope.spending, day);
  for (const window of LIMIT_WINDOWS) spent[window] += amountE8;
  scope.spending = { day, spentE8: spent };
}

/** Returns how much the limits of a scope leave on this day, negative if one was lowered, and the limit that leaves least. */
export function roomOf({ limits, heldE8, spending }: Scope, day: number) {
  let spent: Spending['spentE8'] | undefined;
  let room = { leftE8: MAX_AMOUNT_E8, reached: undefined as Omit<ReachedLimit, 'kind' | 'id' | 'name'> | undefined };
  for (const window of LIMIT_WINDOWS) {
    const limitE8 = limits[window];
    if (limitE8 === undefined) continue;
    spent ??= spentOn(spending, day);
    const spentE8 = spent[window];
    const leftE8 = limitE8 - spentE8 - heldE8;
    if (leftE8 < room.leftE8)
      room = { leftE8, reached: { window, limitE8, spentE8, heldE8, resetsAtMs: windowEndMs(window, day) } };
  }
  return room;
}

/** Returns the first day of the window that contains a day. */
function startOf(window: LimitWindow, day: number): number {
  if (window === 'total') return 0;
  if (window === 'day') return day;
  if (window === 'week') return day - ((day + 3) % 7); // 1970 began on a Thursday.
  return day - new Date(day * DAY_MS).getUTCDate() + 1;
}

/** Returns when the window that contains a day ends, in ms since 1970; undefined for `total`. */
export function windowEndMs(window: LimitWindow, day: number): number | undefined {
  if (window === 'total') return undefined;
  const date = new Date(day * DAY_MS);
  if (window === 'month') return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
  return (startOf(window, day) + (window === 'week' ? 7 : 1)) * DAY_MS;
}
