import type { Knex } from 'knex';
import type { SetScopeRequest, TagState } from './ledger';
import {
  LIMIT_WINDOWS,
  type LimitTexts,
  type LimitWindow,
  NO_SPENDING,
  type Spending,
  type SpendingLimits,
} from './scopes';

/** Returns the SQL of a value: the limits of a scope by window (`LimitTexts`), or null without limits. `scope` is the SQL of the scope's name. */
export function limitsSql(scope: string): string {
  return `(SELECT json_object_agg("window", limit_e8::text) FROM budgets WHERE budgets.scope = ${scope})`;
}

/**
 * Returns the SQL of a truth value: whether a tag's name or one of its values has a limit; null for all other scopes. `scope` and `account`
 * are the SQL of the name of the tag's scope, and of its account.
 */
function isLimitedSql(scope: string, account: string): string {
  return `CASE WHEN ${scope} LIKE 'g:%' THEN EXISTS (
    SELECT FROM budgets WHERE account_id = ${account} AND tag = substr(${scope}, ${TAG_AT})) END`;
}

/** Where the tag begins in the name of its scope, from 1: after `g:`, the account's id and a colon. */
const TAG_AT = 'g:'.length + 36 + ':'.length + 1;

interface ScopeRow extends Omit<SetScopeRequest, 'limits' | 'isLimited'> {
  readonly limits: LimitTexts | null;
  readonly isLimited: boolean | null;
}

function toRequest({ limits, isLimited, ...row }: ScopeRow): SetScopeRequest {
  return { ...row, limits: toLimits(limits ?? {}), ...(isLimited !== null && { isLimited }) };
}

/**
 * Returns the scopes of accounts, except API keys, as Postgres has them: an account that has or had limits, all teams that were created
 * with a row in `scopes` (deleted ones included), and the members that have or had limits. Teams and members that have spent something are
 * always among them. So are the names of tags that have or had limits, and the values that have or had limits of their own.
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
       ${limitsSql('coalesce(known.scope, named.scope)')} AS limits,
       ${isLimitedSql('known.scope', 'known.account_id')} AS "isLimited"
     FROM named FULL JOIN known USING (scope)
     WHERE known.rev IS NOT NULL
       OR scope NOT LIKE 'a:%' AND EXISTS (SELECT FROM scope_spending AS spending WHERE spending.scope = named.scope)
     ORDER BY scope`,
    { accountIds: JSON.stringify(accountIds) },
  );
  return rows.map(toRequest);
}

/**
 * Returns a scope that is no API key with its limits and revision, or undefined without a row in `scopes`. The caller holds the lock of that
 * row, so that nothing here changes meanwhile.
 */
export async function readScopeRow(transaction: Knex, scope: string): Promise<SetScopeRequest | undefined> {
  const { rows } = await transaction.raw<{ rows: ScopeRow[] }>(
    `SELECT account_id::text AS "accountId", scope, rev, coalesce(${nameSql('scopes')}, scope) AS name,
       ${limitsSql('scopes.scope')} AS limits, ${isLimitedSql('scopes.scope', 'scopes.account_id')} AS "isLimited"
     FROM scopes WHERE scope = :scope`,
    { scope },
  );
  const [row] = rows;
  return row && toRequest(row);
}

/** Returns the SQL of the name of a scope: that of the account, team or key, or the member's e-mail address. `table` has `scope` and `account_id`. */
export function nameSql(table: 'scopes' | 'budgets'): string {
  const id = `substr(${table}.scope, 3)::uuid`;
  return `CASE left(${table}.scope, 1)
    WHEN 'a' THEN (SELECT name FROM accounts WHERE id = ${table}.account_id)
    WHEN 't' THEN (SELECT name FROM teams WHERE id = ${id})
    WHEN 'g' THEN substr(${table}.scope, ${TAG_AT})
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

/** Returns what Postgres has of tags' values, by the names of their scopes: their spending, their own limits and the revision of these. */
export async function readTagStates(database: Knex, scopes: readonly string[]): Promise<readonly TagState[]> {
  const spending = await readScopeSpending(database, scopes);
  const { rows } = await database.raw<{ rows: { scope: string; rev: number | null; limits: LimitTexts | null }[] }>(
    `SELECT wanted.value AS scope, scopes.rev, ${limitsSql('wanted.value')} AS limits
     FROM jsonb_array_elements_text(:scopes::jsonb) AS wanted LEFT JOIN scopes ON scopes.scope = wanted.value`,
    { scopes: JSON.stringify(scopes) },
  );
  return rows.map(({ scope, rev, limits }) => {
    return { scope, rev: rev ?? 0, limits: toLimits(limits ?? {}), spending: spending.get(scope) ?? NO_SPENDING };
  });
}

function toSpending({ lastDay, total, day, week, month }: SpendingRow): Spending {
  return {
    day: lastDay,
    spentE8: { total: BigInt(total), day: BigInt(day), week: BigInt(week), month: BigInt(month) },
  };
}
