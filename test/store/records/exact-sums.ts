import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { FIRST_TOKEN_BOUNDS_MS } from '../../../core/records/usage-sums';

const MEASURES = ['calls', 'failed', 'cost_e8', 'input_tokens', 'output_tokens', 'total_tokens'];

/** Asserts that the sums equal the records, by a query that does not use the sums. */
export async function assertSumsAreExact(database: Knex): Promise<void> {
  const { rows: expected } = await database.raw(`
    SELECT account_id, 'none' AS grouped_by, date_trunc('hour', created_at) AS hour, '' AS name, status, sum(calls)::bigint AS calls,
      coalesce(sum(calls) FILTER (WHERE status >= 400 OR error_code IS NOT NULL), 0)::bigint AS failed, sum(cost_e8)::bigint AS cost_e8,
      coalesce(sum(input_tokens), 0)::bigint AS input_tokens, coalesce(sum(output_tokens), 0)::bigint AS output_tokens,
      coalesce(sum(total_tokens), 0)::bigint AS total_tokens, count(first_token_ms) AS measured
    FROM usage_records WHERE created_at < (SELECT until FROM usage_summed)
    GROUP BY account_id, hour, status ORDER BY account_id, hour, status`);
  const shown = expected.map((row: Record<string, unknown>) => ({ ...row, hour: (row['hour'] as Date).toISOString() }));
  for (const groupedBy of ['none', 'key', 'model', 'upstream']) {
    const { rows } = await database.raw(
      `SELECT account_id, 'none' AS grouped_by, hour, '' AS name, status, ${MEASURES.map((name) => `sum(${name})::bigint AS ${name}`).join()},
        sum(${FIRST_TOKENS.map((name) => `coalesce(${name}, 0)`).join(' + ')}) AS measured
       FROM usage_sums WHERE grouped_by = ? AND calls <> 0 GROUP BY account_id, hour, status ORDER BY account_id, hour, status`,
      [groupedBy],
    );
    assert.deepEqual(
      rows.map((row: Record<string, unknown>) => ({ ...row, hour: (row['hour'] as Date).toISOString() })),
      shown,
      groupedBy,
    );
  }
}

export const FIRST_TOKENS = Array.from(
  { length: FIRST_TOKEN_BOUNDS_MS.length + 1 },
  (_, at) => `first_token_${String(at).padStart(2, '0')}`,
);
