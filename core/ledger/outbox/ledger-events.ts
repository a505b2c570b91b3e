import type { Knex } from 'knex';
import { formatUsd } from '../../base/money';
import type { NewEvent } from '../../events/event';
import { writeEvents } from '../../events/raise';
import type { OutboxEntry } from '../ledger';
import { nameSql } from '../scope-rows';
import { chainOf, limitingScopes, parseScope, tagOf } from '../scopes';
import { dayOf } from './rows';

/** A scope that a batch of entries charges on one day. */
interface ChargedScope {
  readonly scope: string;
  readonly day: string;
  /** The scope whose budgets limit it: itself or, for the value of a tag, also the tag. */
  readonly limitedBy: string;
}

/** A threshold of a budget that a scope has reached in one window. */
interface Reached {
  readonly accountId: string;
  readonly budgetId: string;
  readonly scope: string;
  readonly window: string;
  readonly once: string;
  readonly keptUntil: string;
  readonly threshold: number;
  readonly limitE8: string;
  readonly spentE8: string;
}

interface Found {
  readonly reached: readonly Reached[] | null;
  readonly low: readonly { readonly accountId: string; readonly lowE8: string }[] | null;
}

/**
 * Finds the thresholds that the charged scopes have reached, by what `scope_spending` says after the batch, and that have no event in their
 * window. A value's own budget replaces the tag's budget for the same window. Also finds the accounts with a `balance_low_e8` above the
 * lowest balance after an entry of the batch.
 *
 * Postgres sums each scope once, and expects so little work that it does not compile the statement, which would cost ten times as much.
 *
 * A charge after a limit was lowered thus reports the thresholds that the earlier charges have reached. An event must exist until its
 * window has ended and the last charges of the window are shipped.
 */
const FIND = `
  WITH charged AS (
    SELECT * FROM jsonb_to_recordset(:charged::jsonb) AS charged (scope text, day date, "limitedBy" text)),
  limited AS (
    SELECT DISTINCT ON (charged.scope, budgets."window", starts)
      charged.scope, budgets.id, account_id, budgets."window", limit_e8, thresholds, starts,
      CASE "window" WHEN 'total' THEN 'infinity' ELSE starts + ('1 ' || "window")::interval END AS ends
    FROM charged JOIN budgets ON budgets.scope = "limitedBy" CROSS JOIN LATERAL (
      SELECT CASE "window" WHEN 'total' THEN '-infinity' ELSE date_trunc("window", day::timestamp) END AS starts) AS begun
    ORDER BY charged.scope, budgets."window", starts, length("limitedBy") DESC),
  spent AS MATERIALIZED (
    SELECT limited.*, (
      SELECT coalesce(sum(spent_e8), 0) FROM scope_spending AS spending
      WHERE spending.scope = limited.scope AND spending.day >= starts AND spending.day < ends) AS spent_e8
    FROM limited),
  reached AS (
    SELECT spent.*, threshold::int AS threshold, concat_ws(' ', scope, "window", starts::date, threshold) AS once
    FROM spent CROSS JOIN LATERAL jsonb_array_elements_text(thresholds) AS threshold
    WHERE spent_e8 * 100 >= limit_e8 * threshold::bigint),
  fresh AS (
    SELECT account_id AS "accountId", id AS "budgetId", scope, "window", once, threshold,
      ends AT TIME ZONE 'UTC' + interval '7 days' AS "keptUntil", limit_e8::text AS "limitE8", spent_e8::text AS "spentE8"
    FROM reached
    WHERE NOT EXISTS (SELECT FROM events WHERE events.once = 'budget.reached ' || reached.once)),
  low AS (
    SELECT account.id AS "accountId", balance_low_e8::text AS "lowE8"
    FROM jsonb_to_recordset(:balances::jsonb) AS balance ("accountId" uuid, "leastE8" bigint)
    JOIN accounts AS account ON account.id = "accountId" WHERE balance_low_e8 > "leastE8")
  SELECT (SELECT json_agg(fresh ORDER BY "accountId", scope, "window", "keptUntil", threshold) FROM fresh) AS reached,
    (SELECT json_agg(low) FROM low) AS low`;

/**
 * Writes the events that entries cause, in the transaction that has written the entries: `budget.reached` and `balance.low`. Call it last
 * in that transaction. Entries that are shipped twice cause no second event.
 */
export async function raiseLedgerEvents(transaction: Knex.Transaction, entries: readonly OutboxEntry[]): Promise<void> {
  const paid = entries.filter(({ amountE8 }) => amountE8 < 0n);
  if (paid.length === 0) return;
  const bindings = { charged: JSON.stringify(chargedScopes(paid)), balances: JSON.stringify(leastBalances(paid)) };
  const { rows } = await transaction.raw<{ rows: [Found] }>(FIND, bindings);
  const { reached, low } = rows[0];
  const names = await readNames(transaction, reached ?? []);
  const budgets = (reached ?? []).map((each) => budgetReached(each, names));
  await writeEvents(transaction, [...budgets, ...lowBalances(paid, low ?? [])]);
}

/** Returns the names of budgets by id, except those of tags. */
async function readNames(transaction: Knex, reached: readonly Reached[]): Promise<ReadonlyMap<string, string | null>> {
  const ids = reached.filter(({ scope }) => parseScope(scope).kind !== 'tag').map(({ budgetId }) => budgetId);
  if (ids.length === 0) return new Map();
  const { rows } = await transaction.raw<{ rows: { id: string; name: string | null }[] }>(
    `SELECT id::text AS id, ${nameSql('budgets')} AS name
     FROM budgets WHERE id IN (SELECT value::uuid FROM jsonb_array_elements_text(:ids::jsonb))`,
    { ids: JSON.stringify(ids) },
  );
  return new Map(rows.map(({ id, name }) => [id, name]));
}

function chargedScopes(paid: readonly OutboxEntry[]): readonly ChargedScope[] {
  const charged = new Map<string, ChargedScope>();
  for (const entry of paid) {
    if (entry.kind !== 'charge') continue;
    const day = dayOf(entry);
    for (const scope of chainOf(entry.accountId, entry.scopes ?? '', entry.keyId ?? '')) {
      for (const limitedBy of limitingScopes(scope))
        charged.set(`${limitedBy} ${scope} ${day}`, { scope, day, limitedBy });
    }
  }
  return [...charged.values()];
}

function leastBalances(paid: readonly OutboxEntry[]): readonly object[] {
  const least = new Map<string, bigint>();
  for (const { accountId, postedE8 } of paid) {
    const known = least.get(accountId);
    if (known === undefined || postedE8 < known) least.set(accountId, postedE8);
  }
  return [...least].map(([accountId, leastE8]) => ({ accountId, leastE8: String(leastE8) }));
}

function budgetReached(
  { accountId, budgetId, scope, window, threshold, ...reached }: Reached,
  names: ReadonlyMap<string, string | null>,
): NewEvent {
  const { kind, id } = parseScope(scope);
  const name = kind === 'tag' ? (tagOf(scope) ?? null) : (names.get(budgetId) ?? null);
  const scopeId = kind === 'account' || kind === 'tag' ? null : id;
  const amounts = {
    limitUsd: formatUsd(BigInt(reached.limitE8)),
    spentUsd: formatUsd(BigInt(reached.spentE8)),
  };
  return {
    type: 'budget.reached',
    accountId,
    once: reached.once,
    keptUntil: reached.keptUntil,
    data: { budgetId, scope: kind, scopeId, name, window, threshold, ...amounts },
  };
}

/** Returns an event for each entry that takes a balance from at least the account's threshold to below it. */
function lowBalances(paid: readonly OutboxEntry[], low: NonNullable<Found['low']>): readonly NewEvent[] {
  const lowOf = new Map(low.map(({ accountId, lowE8 }) => [accountId, BigInt(lowE8)]));
  return paid.flatMap(({ accountId, rid, kind, postedE8, amountE8 }): NewEvent[] => {
    const lowE8 = lowOf.get(accountId);
    if (lowE8 === undefined || postedE8 >= lowE8 || postedE8 - amountE8 < lowE8) return [];
    const data = { balanceUsd: formatUsd(postedE8), balanceLowUsd: formatUsd(lowE8) };
    return [{ type: 'balance.low', accountId, once: `${rid} ${kind}`, data }];
  });
}
