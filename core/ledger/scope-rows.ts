import type { Knex } from 'knex';
import type { SetScopeRequest } from './ledger';
import { LIMIT_WINDOWS, type LimitTexts, type LimitWindow, type Spending, type SpendingLimits } from './scopes';

/** Returns the SQL of a value: the limits of a scope by window (`LimitTexts`), or null without limits. `scope` is the SQL of the scope's name. */
export function limitsSql(scope: string): string {
  return `(SELECT json_object_agg("window", limit_e8::text) FROM budgets WHERE budgets.scope = ${scope})`;
}

interface ScopeRow extends Omit<SetScopeRequest, 'limits'> {
  readonly limits: LimitTexts | null;
}

/**
 * Returns the scopes of accounts, except API keys, as Postgres has them: an account that has or had limits, all teams that were created
 * with a row in `scopes` (deleted ones included), and the members that have or had limits. Teams and members that have spent something are
 * always among them.
 */
export async function readScopes(database: Knex, accountIds: readonly string[]): Promise<readonly SetScopeRequest[]> {
  const { rows } = await database.raw<{ rows: ScopeRow[] }>(
    `WITH owner AS (SELECT value::uuid AS account_id FROM jsonb_array_elements_text(:accountIds::jsonb)),
     named AS (
       SELECT account_id, 'a:' || id AS scope, name FROM owner JOIN accounts ON id = account_id
       UNION ALL SELECT account_id, 't:' || id, name FROM owner JOIN teams USING (account_id)
       UNION ALL SELECT account_id, 'm:' || id, email FROM owner JOIN users USING (account_id)),
     known AS (SELECT account_id, scope, rev FROM owner JOIN scopes USING (account_id))
     SELECT coalesce(known.account_id, named.account_id)::text AS "accountId", scope, coalesce(known.rev, 0) AS rev,
       coalesce(named.name, scope) AS name,
       ${limitsSql('coalesce(known.scope, named.scope)')} AS limits
     FROM named FULL JOIN known USING (scope)
     WHERE known.rev IS NOT NULL
       OR scope NOT LIKE 'a:%' AND EXISTS (SELECT FROM scope_spending AS spending WHERE spending.scope = named.scope)
     ORDER BY scope`,
    { accountIds: JSON.stringify(accountIds) },
  );
  return rows.map(({ limits, ...row }) => ({ ...row, limits: toLimits(limits ?? {}) }));
}

/**
 * Returns a scope that is no API key with its limits and revision, or undefined without a row in `scopes`. The caller holds the lock of that
 * row, so that nothing here changes meanwhile.
 */
export async function readScopeRow(transaction: Knex, scope: string): Promise<SetScopeRequest | undefined> {
  const { rows } = await transaction.raw<{ rows: ScopeRow[] }>(
    `SELECT account_id::text AS "accountId", scope, rev, coalesce(${nameSql('scopes')}, scope) AS name,
       ${limitsSql('scopes.scope')} AS limits
     FROM scopes WHERE scope = :scope`,
    { scope },
  );
  const [row] = rows;
  return row && { ...row, limits: toLimits(row.limits ?? {}) };
}

/** Returns the SQL of the name of a scope: that of the account, team or key, or the member's e-mail address. `table` has `scope` and `account_id`. */
export function nameSql(table: 'scopes' | 'budgets'): string {
  const id = `substr(${table}.scope, 3)::uuid`;
  return `CASE left(${table}.scope, 1)
    WHEN 'a' THEN (SELECT name FROM accounts WHERE id = ${table}.account_id)
    WHEN 't' THEN (SELECT name FROM teams WHERE id = ${id})
    WHEN 'm' THEN (SELECT email FROM users WHERE id = ${id})
    WHEN 'k' THEN (SELECT name FROM api_keys WHERE id = ${id}) END`;
}

function toLimits(texts: LimitTexts): SpendingLimits {
  const limits = LIMIT_WINDOWS.flatMap((window) => {
    const text = texts[window];
    return text === undefined ? [] : [[window, BigInt(text)]];
  });
  return Object.fromEntries(limits);
}

interface SpendingRow extends Readonly<Record<LimitWindow, string>> {
  readonly scope: string;
  readonly lastDay: number;
}

/** Returns what scopes have spent, by their names: in all, and on their last day with a charge, in its week and in its month. */
export async function readScopeSpending(
  database: Knex,
  scopes: readonly string[],
): Promise<ReadonlyMap<string, Spending>> {
  const { rows } = await database.raw<{ rows: SpendingRow[] }>(
    `SELECT wanted.value AS scope, spending.*
     FROM jsonb_array_elements_text(:scopes::jsonb) AS wanted
     CROSS JOIN LATERAL (
       SELECT max(day) - DATE '1970-01-01' AS "lastDay", sum(spent_e8)::text AS total,
         sum(spent_e8) FILTER (WHERE day = last)::text AS day,
         sum(spent_e8) FILTER (WHERE day >= date_trunc('week', last::timestamp)::date)::text AS week,
         sum(spent_e8) FILTER (WHERE day >= date_trunc('month', last::timestamp)::date)::text AS month
       FROM (SELECT day, spent_e8, max(day) OVER () AS last FROM scope_spending WHERE scope = wanted.value) AS each
     ) AS spending
     WHERE spending.total IS NOT NULL`,
    { scopes: JSON.stringify(scopes) },
  );
  return new Map(rows.map((row) => [row.scope, toSpending(row)]));
}

function toSpending({ lastDay, total, day, week, month }: SpendingRow): Spending {
  return {
    day: lastDay,
    spentE8: { total: BigInt(total), day: BigInt(day), week: BigInt(week), month: BigInt(month) },
  };
}
