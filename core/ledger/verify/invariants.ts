import type { LedgerInspection, SeenHold } from '../ledger';
import { chainOf, parseScope } from '../scopes';

/** The invariants of the ledger, which hold at every moment. Documents, tests and metrics use these names, and a violation contains one of them. */
export const INVARIANTS = {
  account_missing: 'an account of Postgres is in the ledger',
  key_missing: 'a key of Postgres is in the ledger',
  available_negative: 'available ≥ 0',
  held_negative: 'held ≥ 0',
  balance_differs: 'available + held = posted',
  holds_differ: 'held of an account = the sum of its open holds and its allowances',
  scope_holds_differ:
    'held of a scope (account, team, member, tag or key) = the sum of its open holds and its allowances',
  hold_without_deadline: "a call's hold has a deadline",
  hold_overdue: "a call's hold, or an allowance, is given back within 60 s of its deadline",
  limit_exceeded: 'spent of a scope ≤ its limit, unless the limit was lowered',
  spent_differs: 'spent of a scope = the sum of its charges',
  chain_gap: 'entries of an account are numbered without a gap',
  chain_broken: 'posted of an entry = posted of the one before + its amount',
  chain_end_differs: "an account's noted last entry, which recovery reads, is its last entry",
  scope_sum_differs: 'the sums of what a scope has spent by day, which recovery reads, are the sum of its charges',
  posted_differs: 'posted in the ledger = the sum of all entries up to its last one',
  entry_lost: 'an entry of the ledger is in its outbox or in Postgres',
  ledger_behind: 'the ledger knows every entry of Postgres',
  closed_twice: 'a reservation is closed by one entry, its own or that of a report',
  record_missing: 'a closed reservation of a call has a usage record, and a report has one for each of its calls',
  record_twice: 'a closed reservation of a call has one usage record, and a report no more than calls',
  record_without_entry: 'a usage record with a reservation has the entry that closed it, or that of its report',
  record_differs: 'the usage records of an entry add up to what it charged',
  credit_missing: 'a credit of Postgres has its entry',
  outbox_old: 'an entry leaves the outbox within 60 s',
} as const;

export type Invariant = keyof typeof INVARIANTS;

/** One case in which an invariant of the ledger does not hold. A member is null if it is unknown, or if the violation concerns all accounts. */
export interface Violation {
  readonly invariant: Invariant;
  readonly accountId: string | null;
  /** The number of the entry that violates the invariant, or of the last entry in the ledger when it was checked. */
  readonly seq: number | null;
  readonly keyId: string | null;
  /** The name of the account, team, member, tag or key whose sums violate the invariant, as in scopes.ts. */
  readonly scope: string | null;
  readonly rid: string | null;
  readonly expected: string;
  readonly found: string;
}

type Detail = Partial<Pick<Violation, 'accountId' | 'seq' | 'keyId' | 'scope' | 'rid'>>;

export function violation(
  invariant: Invariant,
  { accountId = null, seq = null, keyId = null, scope = null, rid = null }: Detail,
  expected: unknown,
  found: unknown,
): Violation {
  return { invariant, accountId, seq, keyId, scope, rid, expected: String(expected), found: String(found) };
}

/** How late a hold may expire, and how old an outbox entry may be, in ms. Expiry pauses after an outage of Redis, and Postgres may restart. */
export const PATIENCE_MS = 60_000;

/** Returns the violations that are visible in one view of an account in the ledger, without Postgres. */
export function judgeAccount(accountId: string, { accounts, holds, nowMs }: LedgerInspection): readonly Violation[] {
  const account = accounts.get(accountId);
  if (account === undefined) return [];
  const { availableE8, heldE8, postedE8, seq } = account;
  const own = holds.filter((hold) => hold.accountId === accountId);
  const found: Violation[] = [];
  const at = { accountId, seq };
  if (availableE8 < 0n) found.push(violation('available_negative', at, '≥ 0', availableE8));
  if (heldE8 < 0n) found.push(violation('held_negative', at, '≥ 0', heldE8));
  if (availableE8 + heldE8 !== postedE8)
    found.push(violation('balance_differs', at, postedE8, `${availableE8} + ${heldE8}`));
  if (sumOf(own) !== heldE8) found.push(violation('holds_differ', at, sumOf(own), heldE8));
  return [...found, ...own.flatMap((hold) => judgeHold(hold, seq, nowMs))];
}

function judgeHold({ accountId, keyId, rid, deadlineMs, ofCall }: SeenHold, seq: number, nowMs: number): Violation[] {
  const at = { accountId, keyId, rid, seq };
  if (deadlineMs === undefined) return ofCall ? [violation('hold_without_deadline', at, 'a deadline', 'none')] : [];
  const lateMs = nowMs - deadlineMs;
  return lateMs > PATIENCE_MS
    ? [violation('hold_overdue', at, `at most ${PATIENCE_MS} ms late`, `${lateMs} ms late`)]
    : [];
}

/** A scope of an account, by its name in the ledger. */
export interface NamedScope {
  readonly accountId: string;
  readonly scope: string;
}

/** Returns what a violation says of a scope. */
export function scopeDetail({ accountId, scope }: NamedScope, seq: number | null): Detail {
  const { kind, id } = parseScope(scope);
  return { accountId, seq, scope, keyId: kind === 'key' ? id : null };
}

/** Returns the violations that are visible in one view of a scope in the ledger. `held` has the sums of the view's holds by scope. */
export function judgeScope(
  named: NamedScope,
  { accounts, scopes }: LedgerInspection,
  held: ReadonlyMap<string, bigint>,
): readonly Violation[] {
  const { heldE8, spentE8, limitE8 } = scopes.get(named.scope) ?? { heldE8: 0n, spentE8: 0n };
  const at = scopeDetail(named, accounts.get(named.accountId)?.seq ?? null);
  const sumE8 = held.get(named.scope) ?? 0n;
  return [
    ...(sumE8 === heldE8 ? [] : [violation('scope_holds_differ', at, sumE8, heldE8)]),
    ...(limitE8 === undefined || spentE8 <= limitE8 ? [] : [violation('limit_exceeded', at, `≤ ${limitE8}`, spentE8)]),
  ];
}

/** Sums open holds by the names of the scopes that they count in. */
export function sumByScope(holds: readonly SeenHold[]): ReadonlyMap<string, bigint> {
  const sums = new Map<string, bigint>();
  for (const { accountId, scopes, keyId, amountE8 } of holds)
    for (const name of chainOf(accountId, scopes, keyId)) sums.set(name, (sums.get(name) ?? 0n) + amountE8);
  return sums;
}

function sumOf(holds: readonly SeenHold[]): bigint {
  return holds.reduce((sum, { amountE8 }) => sum + amountE8, 0n);
}

/** The prefix of the idempotency key of a credit that refunds the charge of an already closed reservation. */
export const COMPENSATION = 'ledger.repair:';

/** Returns the SQL condition that the charge of a reservation was refunded. Its arguments are SQL expressions, such as column names. */
export function isCompensated(accountId: string, rid: string): string {
  return `EXISTS (SELECT FROM credits
    WHERE credits.account_id = ${accountId} AND credits.idempotency_key = '${COMPENSATION}' || ${rid})`;
}
