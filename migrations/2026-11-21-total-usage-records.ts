import type { Knex } from 'knex';

/**
 * What usage records come to, hour by hour: of an account in all (`grouped_by` is `none`, `name` empty), and of each of its
 * keys, models and upstreams, by status. Triggers keep it, in the transaction that writes the records, so that it is what
 * they add up to whoever writes them and however often. `first_token_NN` counts the calls whose first token came after the
 * NNth of these bounds and before the next; null is none, which takes no space.
 *
 * A month's chart of 10^6 records is then read from some thousand rows. Summed further apart (key and model, say) there would
 * be about as many rows as records; hours, because days begin at other times elsewhere.
 */
const MEASURES = [
  ...['calls', 'failed', 'cost_e8', 'input_tokens', 'output_tokens', 'total_tokens'],
  ...['cache_creation_tokens', 'cache_read_tokens'],
];

/** Four to a doubling, from 16 ms to two minutes. */
const BOUNDS_MS = Array.from({ length: 53 }, (_, at) => Math.round(2 ** (4 + at / 4)));
const FIRST_TOKENS = Array.from(
  { length: BOUNDS_MS.length + 1 },
  (_, at) => `first_token_${String(at).padStart(2, '0')}`,
);

const KEY = 'account_id, grouped_by, hour, name, status';

/** Adds `records`, each with a `sign`. Rows are taken in one order, so that writers wait for each other, but never in a circle. */
const add = (records: string) => `
  INSERT INTO usage_sums AS there (${KEY}, ${MEASURES.join()}, ${FIRST_TOKENS.join()})
  SELECT ${KEY}, ${MEASURES.map((name) => `sum(${name})`).join()},
    ${FIRST_TOKENS.map((_, at) => `sum(calls) FILTER (WHERE first_token = ${at})`).join()}
  FROM (
    SELECT ${KEY}, first_token, sum(sign) AS calls,
      coalesce(sum(sign) FILTER (WHERE status >= 400 OR error_code IS NOT NULL), 0) AS failed,
      ${MEASURES.slice(2)
        .map((name) => `coalesce(sum(sign * ${name}), 0) AS ${name}`)
        .join()}
    FROM (
      SELECT *, date_bin('1 hour', created_at, '2000-01-01 00:00:00+00') AS hour,
        width_bucket(first_token_ms, '{${BOUNDS_MS.join()}}'::int[]) AS first_token
      FROM (${records}) AS record) AS record
    CROSS JOIN LATERAL (VALUES ('none', ''), ('key', key_id::text), ('model', coalesce(model, model_requested, '')),
      ('upstream', coalesce(upstream, ''))) AS grouped (grouped_by, name)
    GROUP BY ${KEY}, first_token) AS class
  GROUP BY ${KEY} ORDER BY ${KEY}
  ON CONFLICT (${KEY}) DO UPDATE SET
    ${[
      ...MEASURES.map((name) => `${name} = there.${name} + excluded.${name}`),
      ...FIRST_TOKENS.map(
        (name) => `${name} = coalesce(there.${name} + excluded.${name}, there.${name}, excluded.${name})`,
      ),
    ].join()}`;

const ADDED = 'SELECT 1 AS sign, * FROM added';
const REMOVED = 'SELECT -1 AS sign, * FROM removed';

const TRIGGERS = {
  insert: { tables: 'NEW TABLE AS added', records: ADDED },
  update: { tables: 'OLD TABLE AS removed NEW TABLE AS added', records: `${ADDED} UNION ALL ${REMOVED}` },
  delete: { tables: 'OLD TABLE AS removed', records: REMOVED },
};

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`CREATE TABLE usage_sums (
    account_id uuid NOT NULL, grouped_by text NOT NULL, hour timestamptz NOT NULL, name text NOT NULL, status int NOT NULL,
    ${MEASURES.map((name) => `${name} bigint NOT NULL`).join()}, ${FIRST_TOKENS.map((name) => `${name} int`).join()},
    PRIMARY KEY (${KEY})) WITH (fillfactor = 80)`);
  for (const [event, { tables, records }] of Object.entries(TRIGGERS)) {
    await knex.raw(`CREATE FUNCTION sum_usage_after_${event}() RETURNS trigger LANGUAGE plpgsql AS $sum$
      BEGIN ${add(records)}; RETURN NULL; END $sum$`);
    await knex.raw(`CREATE TRIGGER sum_usage_after_${event} AFTER ${event} ON usage_records REFERENCING ${tables}
      FOR EACH STATEMENT EXECUTE FUNCTION sum_usage_after_${event}()`);
  }
  await addExisting(knex);
}

/** A day at a time. Nobody else writes records: who makes a trigger locks the table. */
async function addExisting(knex: Knex): Promise<void> {
  const nextDay = async (from: string) => {
    const { rows } = await knex.raw<{ rows: { day: string | null }[] }>(
      `SELECT (min(created_at) AT TIME ZONE 'UTC')::date::text AS day FROM usage_records WHERE created_at >= ?::timestamptz`,
      [from],
    );
    return rows[0]?.day ?? null;
  };
  const inDay = `SELECT 1 AS sign, * FROM usage_records
    WHERE created_at >= :from::timestamptz AND created_at < :from::timestamptz + interval '24 hours'`;
  for (let day = await nextDay('-infinity'); day !== null; ) {
    await knex.raw(add(inDay), { from: `${day} 00:00:00+00` });
    day = await nextDay(new Date(Date.parse(`${day}T00:00:00Z`) + 86_400_000).toISOString());
  }
}

export async function down(knex: Knex): Promise<void> {
  for (const event of Object.keys(TRIGGERS)) {
    await knex.raw(`DROP TRIGGER sum_usage_after_${event} ON usage_records`);
    await knex.raw(`DROP FUNCTION sum_usage_after_${event}()`);
  }
  await knex.schema.dropTable('usage_sums');
}
