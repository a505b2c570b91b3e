import knex, { type Knex } from 'knex';
import { sumSomeUntil } from '../core/records/usage-roll-up';

export const RARE_MODEL = 'rarely-called';
export const RARE_UPSTREAM = 'rarely-asked';

/** The id of a key with very few usage records. */
export const RARE_KEY = '00000000-0000-7000-9000-00000000ffff';

const BATCH = 250_000;

/** The time until which the bench sums usage records. All records are older, so that all are summed, as old records are in production. */
const LATER = new Date(Date.now() + 91 * 86_400_000);

/**
 * Writes usage records over three months from the first of the current month, so that they fill several partitions. 6 of 10 belong to one
 * account, the rest to 500 others. Keys, models and upstreams are skewed: one of each occurs in only 1 of 50,000 calls. 97 % of the calls
 * were answered. Postgres generates the records, a million in well under a minute.
 */
export async function fillUsageRecords(
  database: Knex,
  count: number,
  { accountId, keyId }: { readonly accountId: string; readonly keyId: string },
): Promise<void> {
  const indexes = await searchIndexes(database);
  for (const { name } of indexes) await database.raw('DROP INDEX ??', [name]);
  await database.raw('SELECT setseed(0.25)');
  for (let from = 1; from <= count; from += BATCH) {
    await database.raw(FILL, {
      from,
      to: Math.min(count, from + BATCH - 1),
      count,
      accountId,
      keyId,
      rareKey: RARE_KEY,
    });
  }
  for (const { definition } of indexes) await database.raw(definition.replace(' ON ONLY ', ' ON '));
  while (await sumSomeUntil(database, LATER, BATCH));
  await database.raw('VACUUM ANALYZE usage_records, usage_sums');
}

/** Returns name and definition of the search indexes. Dropping them before the insert and rebuilding them afterwards takes a tenth of the time. */
async function searchIndexes(database: Knex): Promise<readonly { name: string; definition: string }[]> {
  const { rows } = await database.raw(`SELECT indexname AS name, indexdef AS definition FROM pg_indexes
    WHERE tablename = 'usage_records' AND indexdef NOT LIKE 'CREATE UNIQUE%'`);
  return rows;
}

const FILL = `
  INSERT INTO usage_records
    (request_id, created_at, rid, account_id, key_id, protocol, path, strategy, model_requested, model, upstream, attempts,
     fallback, stream, status, source, error_code, input_tokens, output_tokens, total_tokens, cache_creation_tokens,
     cache_read_tokens, cost_e8, billing, response_time_ms, first_token_ms, config_revision)
  SELECT 'req_' || substr(md5(n::text), 1, 24), date_trunc('month', now()) + n * interval '90 days' / :count,
    gen_random_uuid(),
    CASE WHEN account = 0 THEN :accountId::uuid ELSE ('00000000-0000-7000-8000-' || lpad(account::text, 12, '0'))::uuid END,
    CASE WHEN account = 0 AND n % 50000 = 1 THEN :rareKey::uuid WHEN account = 0 AND key = 0 THEN :keyId::uuid
      ELSE ('00000000-0000-7000-9000-' || lpad((account * 10 + key)::text, 12, '0'))::uuid END,
    'chat', '/v1/chat/completions', 'quality',
    CASE WHEN n % 50000 = 2 THEN '${RARE_MODEL}' ELSE 'acme/model-' || model END,
    CASE WHEN status = 400 THEN NULL WHEN n % 50000 = 2 THEN '${RARE_MODEL}' ELSE 'model-' || model END,
    CASE WHEN status = 400 THEN NULL WHEN n % 50000 = 3 THEN '${RARE_UPSTREAM}' ELSE 'upstream-' || upstream END,
    1, false, true, status, 'provider', CASE WHEN status = 200 THEN NULL ELSE 'UPSTREAM_FAILED' END,
    100, 20, 120, 0, 0, CASE WHEN status = 200 THEN 1000 + n % 1000 ELSE 0 END,
    CASE WHEN status = 200 THEN 'actual' ELSE 'released' END, 900, 80 + n * 7919 % 4000,
    '3f2a9c0d1e'
  FROM (
    SELECT n, CASE WHEN random() < 0.6 THEN 0 ELSE 1 + floor(random() * 500)::int END AS account,
      floor(random() * random() * 10)::int AS key, floor(random() * random() * 30)::int AS model,
      floor(random() * random() * 12)::int AS upstream,
      CASE WHEN random() < 0.97 THEN 200 WHEN random() < 0.6 THEN 400 WHEN random() < 0.9 THEN 429 ELSE 502 END AS status
    FROM generate_series(:from::bigint, :to::bigint) AS n) AS made`;

/** Opens a database connection without time limits, for long statements that only the bench runs. */
export function patientDatabase(databaseUrl: string): Knex {
  return knex({ client: 'pg', connection: databaseUrl, pool: { min: 1, max: 1 } });
}
