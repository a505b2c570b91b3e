import type { Knex } from 'knex';

/**
 * Sums are no longer kept by whoever writes a record, which was almost half of what writing it cost, but made of many records at
 * once: `sum_usage_until` adds those from `usage_summed.until` on and moves it. `usage_sums` is what the records before it come to:
 * triggers add only what is written, changed or deleted before it, which is seldom; one writer after the other, for a statement that
 * inserts and updates adds twice, and two of those could wait for each other's sums.
 *
 * It waits for whoever is writing, and keeps others from it until it has committed: a trigger then sees either the time as it was,
 * and its records are found here, or as it is. How long that takes is bounded by how many records it adds at most; it answers
 * whether there are more.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('LOCK TABLE usage_records IN SHARE ROW EXCLUSIVE MODE');
  await knex.raw('CREATE TABLE usage_summed (until timestamptz NOT NULL)');
  await knex.raw('CREATE UNIQUE INDEX usage_summed_once ON usage_summed ((true))');
  await knex.raw('INSERT INTO usage_summed SELECT now()');
  await knex.raw(add(`SELECT -1 AS sign, * FROM usage_records WHERE created_at >= now()`));
  for (const [event, records] of Object.entries(WRITTEN))
    await replaceTrigger(
      knex,
      event,
      `DECLARE
        summed timestamptz := (SELECT until FROM usage_summed);
      BEGIN
        IF EXISTS (SELECT FROM (${records}) AS record WHERE created_at < summed) THEN
          PERFORM FROM usage_summed FOR UPDATE;
          ${add(`SELECT * FROM (${records}) AS record WHERE created_at < summed`)};
        END IF;
        RETURN NULL;
      END`,
    );
  await knex.raw(`CREATE FUNCTION sum_usage_until(wanted timestamptz, most int) RETURNS boolean
    LANGUAGE plpgsql SET lock_timeout = '200ms' AS $sum$
    DECLARE
      summed timestamptz;
      following timestamptz;
    BEGIN
      LOCK TABLE ONLY usage_records IN SHARE ROW EXCLUSIVE MODE;
      SELECT until INTO summed FROM usage_summed;
      IF summed >= wanted THEN
        RETURN false;
      END IF;
      SELECT created_at INTO following FROM usage_records
        WHERE created_at > summed AND created_at < wanted ORDER BY created_at OFFSET most LIMIT 1;
      following := coalesce(following, wanted);
      ${add('SELECT 1 AS sign, * FROM usage_records WHERE created_at >= summed AND created_at < following')};
      UPDATE usage_summed SET until = following;
      RETURN following < wanted;
    END $sum$`);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('LOCK TABLE usage_records IN SHARE ROW EXCLUSIVE MODE');
  await knex.raw(
    add('SELECT 1 AS sign, record.* FROM usage_records AS record, usage_summed WHERE created_at >= until'),
  );
  for (const [event, records] of Object.entries(WRITTEN))
    await replaceTrigger(knex, event, `BEGIN ${add(records)}; RETURN NULL; END`);
  await knex.raw('DROP FUNCTION sum_usage_until');
  await knex.schema.dropTable('usage_summed');
}

/** What the triggers of `total-usage-records` call. */
async function replaceTrigger(knex: Knex, event: string, body: string): Promise<void> {
  await knex.raw(
    `CREATE OR REPLACE FUNCTION sum_usage_after_${event}() RETURNS trigger LANGUAGE plpgsql AS $sum$ ${body} $sum$`,
  );
}

const ADDED = 'SELECT 1 AS sign, * FROM added';
const REMOVED = 'SELECT -1 AS sign, * FROM removed';
const WRITTEN = { insert: ADDED, update: `${ADDED} UNION ALL ${REMOVED}`, delete: REMOVED };

const MEASURES = [
  ...['calls', 'failed', 'cost_e8', 'input_tokens', 'output_tokens', 'total_tokens'],
  ...['cache_creation_tokens', 'cache_read_tokens'],
];
const BOUNDS_MS = Array.from({ length: 53 }, (_, at) => Math.round(2 ** (4 + at / 4)));
const FIRST_TOKENS = Array.from(
  { length: BOUNDS_MS.length + 1 },
  (_, at) => `first_token_${String(at).padStart(2, '0')}`,
);
const KEY = 'account_id, grouped_by, hour, name, status';

/** As in `total-usage-records`: adds `records`, each with a `sign`, in one order, so that writers never wait in a circle. */
function add(records: string): string {
  return `
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
}
