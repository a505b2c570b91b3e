import type { Knex } from 'knex';
import { joinDemands, readDemands } from '../catalog/demands';
import { type AccessColumns, accessOf } from './key-access';
import type { KeyStatus, SetKeyRequest } from './ledger';
import { type KeyLimitColumns, LIMIT_COLUMNS, limitsOfRow } from './limit-fields';
import { limitsSql } from './scope-rows';
import { ownersOf } from './scopes';

interface KeyRow extends KeyLimitColumns, AccessColumns {
  readonly accountId: string;
  readonly keyId: string;
  readonly name: string;
  readonly status: KeyStatus;
  readonly rev: number;
  readonly allowedModels: readonly string[] | null;
  readonly markup: string | null;
  readonly teamId: string | null;
  readonly memberId: string | null;
  readonly requiredTags: readonly string[] | null;
  readonly demands: readonly string[] | null;
}

/** The names of the tags that the calls of a key must have, those that its team requires included, as JSON; null for none. */
const REQUIRED_TAGS = `(SELECT jsonb_agg(DISTINCT name ORDER BY name) FROM (
    SELECT jsonb_array_elements_text(key.required_tags) AS name
    UNION ALL SELECT jsonb_array_elements_text(required_tags) FROM teams WHERE teams.id = key.team_id) AS required)`;

/** The demands of a key, its team and its account, as a JSON list; null for none. */
const DEMANDS = `(SELECT jsonb_agg(demands) FROM (VALUES (key.require),
    ((SELECT require FROM teams WHERE teams.id = key.team_id)), (owner.require)) AS given (demands) WHERE demands IS NOT NULL)`;

/**
 * Returns API keys as Postgres has them, with what they have from their team and account. `where` is the SQL of a condition for `key`, a row
 * of api_keys.
 */
export async function readKeyRows(
  database: Knex,
  where: string,
  values: Readonly<Record<string, string>>,
): Promise<readonly SetKeyRequest[]> {
  const { rows } = await database.raw<{ rows: KeyRow[] }>(
    `SELECT key.account_id::text AS "accountId", key.id::text AS "keyId", key.name, key.hash, key.status,
            ${LIMIT_COLUMNS.map((column) => `key.${column}`).join(', ')}, ${limitsSql("'k:' || key.id")} AS limits,
            key.rev, key.allowed_models AS "allowedModels", coalesce(key.markup, owner.markup) AS markup,
            key.expires_at, key.team_id, key.member_until, key.allowed_addresses, key.previous_hash, key.previous_until,
            key.team_id::text AS "teamId", key.member_id::text AS "memberId", ${REQUIRED_TAGS} AS "requiredTags",
            ${DEMANDS} AS demands
     FROM api_keys AS key JOIN accounts AS owner ON owner.id = key.account_id WHERE ${where}`,
    values,
  );
  return rows.map(toRequest);
}

function toRequest(row: KeyRow): SetKeyRequest {
  const { accountId, keyId, hash, status, rev, name, requiredTags } = row;
  const demands = joinDemands(...(row.demands ?? []).map(readDemands));
  return {
    accountId,
    keyId,
    hash,
    status,
    ...limitsOfRow(row),
    settings: {
      rev,
      name,
      allowedModels: row.allowedModels ?? undefined,
      markup: row.markup ?? undefined,
      ...accessOf(row),
      ...ownersOf(row),
      ...(requiredTags !== null && { requiredTags }),
      ...(demands !== undefined && { require: demands.text }),
    },
  };
}
