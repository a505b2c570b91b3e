import { joinDemands, readDemands } from '../catalog/demands';

/** Returns the SQL of a value: the demands of a key, its team and its account, as a JSON list; null for none. `key` is the name of a row of api_keys. */
export function demandsSql(key: string): string {
  return `(SELECT jsonb_agg(demands) FROM (VALUES (${key}.require),
    ((SELECT require FROM teams WHERE teams.id = ${key}.team_id)),
    ((SELECT require FROM accounts WHERE accounts.id = ${key}.account_id))) AS given (demands) WHERE demands IS NOT NULL)`;
}

/** Returns the demands for a key's settings, joined to one text. It leaves them out if there are none. */
export function requireOf({ demands }: { readonly demands: readonly string[] | null }): { readonly require?: string } {
  const joined = joinDemands(...(demands ?? []).map(readDemands));
  return joined === undefined ? {} : { require: joined.text };
}
