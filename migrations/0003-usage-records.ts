import type { Knex } from 'knex';
import { createPartitions } from './partitions';

/** Creates usage records, their indexes, and the sums of them that charts and totals are read from. */
export async function up(knex: Knex): Promise<void> {
  await createRecords(knex);
  await createSums(knex);
  for (const trigger of TRIGGERS) await createTrigger(knex, trigger);
  await createRollUp(knex);
}

/**
 * A record usually stands for one call. `calls` is higher where it stands for calls that were refused in the same second. `rollout`,
 * `rollout_stage`, `rollout_arm` and `routing` are null where the call was in no rollout and had no choice of upstreams.
 */
async function createRecords(knex: Knex): Promise<void> {
  await knex.raw(`CREATE TABLE usage_records (
    request_id text NOT NULL,
    created_at timestamptz(3) NOT NULL,
    rid uuid,
    account_id uuid NOT NULL,
    key_id uuid NOT NULL,
    protocol text NOT NULL,
    path text NOT NULL,
    strategy text,
    model_requested text,
    model text,
    upstream text,
    attempts int NOT NULL,
    fallback boolean NOT NULL,
    stream boolean NOT NULL,
    status int NOT NULL,
    source text NOT NULL,
    error_code text,
    input_tokens bigint,
    output_tokens bigint,
    total_tokens bigint,
    cache_creation_tokens bigint,
    cache_read_tokens bigint,
    cost_e8 bigint NOT NULL,
    billing text NOT NULL CHECK (billing IN ('actual', 'estimated', 'released', 'partial', 'expired')),
    response_time_ms int NOT NULL,
    first_token_ms int,
    config_revision text NOT NULL,
    rollout text,
    rollout_stage int,
    rollout_arm text,
    routing jsonb,
    calls int NOT NULL DEFAULT 1,
    CONSTRAINT usage_records_once UNIQUE (request_id, created_at)
  ) PARTITION BY RANGE (created_at)`);
  for (const [name, on] of Object.entries(INDEXES)) await knex.raw(`CREATE INDEX ${name} ON usage_records ${on}`);
  await createPartitions(knex, 'usage_records');
}

const MODEL = 'coalesce(model, model_requested)';

/** The columns that totals and charts read beside the key of their index, so that Postgres reads the index alone. */
const SUMMED = [
  ...['model', 'model_requested', 'upstream', 'status', 'error_code', 'first_token_ms', 'cost_e8'],
  ...['input_tokens', 'output_tokens', 'total_tokens', 'cache_creation_tokens', 'cache_read_tokens'],
];
const SUMMED_OF_UPSTREAM = SUMMED.filter((column) => column !== 'upstream');

/**
 * Pages of usage records are filtered by these columns, newest first: `created_at` is last, so that a page is the end of an index
 * however many records match. Most indexes exist once for an account and once for operators, who see all accounts. The indexes of
 * failures leave the answered calls out. Measurements: the bench `usage`.
 */
const INDEXES: Readonly<Record<string, string>> = {
  usage_records_by_account: `(account_id, created_at, request_id) INCLUDE (${['calls', 'key_id', ...SUMMED].join()})`,
  usage_records_by_time: '(created_at, request_id)',
  usage_records_by_key: `(key_id, created_at) INCLUDE (${['calls', 'account_id', 'upstream', ...SUMMED_OF_UPSTREAM].join()})`,
  usage_records_by_model: `(account_id, ${MODEL}, created_at)`,
  usage_records_by_model_of_all: `(${MODEL}, created_at)`,
  usage_records_by_upstream: `(account_id, upstream, created_at) INCLUDE (${['calls', 'key_id', ...SUMMED_OF_UPSTREAM].join()})`,
  usage_records_by_upstream_of_all: '(upstream, created_at)',
  usage_records_by_failure: '(account_id, status, created_at) WHERE status <> 200',
  usage_records_by_failure_of_all: '(status, created_at) WHERE status <> 200',
};

const MEASURES = [
  ...['calls', 'failed', 'cost_e8', 'input_tokens', 'output_tokens', 'total_tokens'],
  ...['cache_creation_tokens', 'cache_read_tokens'],
];

/** Four bounds to a doubling, from 16 ms to two minutes. */
const BOUNDS_MS = Array.from({ length: 53 }, (_, at) => Math.round(2 ** (4 + at / 4)));
const FIRST_TOKENS = Array.from(
  { length: BOUNDS_MS.length + 1 },
  (_, at) => `first_token_${String(at).padStart(2, '0')}`,
);

const KEY = 'account_id, grouped_by, hour, name, status';

/**
 * `usage_sums` adds up the records of each hour: those of the whole account (`grouped_by` is `none`, `name` is empty), of each key,
 * of each model and of each upstream, by status. `first_token_NN` counts the calls whose first token came between the NNth bound and
 * the next. Null means none and takes no space. A month's chart of 10^6 records reads some thousand rows. Hours, not days, because
 * days begin at other times in other time zones.
 *
 * `usage_sums` contains the records before `usage_summed.until`.
 */
async function createSums(knex: Knex): Promise<void> {
  await knex.raw(`CREATE TABLE usage_sums (
    account_id uuid NOT NULL, grouped_by text NOT NULL, hour timestamptz NOT NULL, name text NOT NULL, status int NOT NULL,
    ${MEASURES.map((name) => `${name} bigint NOT NULL`).join()}, ${FIRST_TOKENS.map((name) => `${name} int`).join()},
    PRIMARY KEY (${KEY})) WITH (fillfactor = 80)`);
  await knex.raw('CREATE TABLE usage_summed (until timestamptz NOT NULL)');
  await knex.raw('CREATE UNIQUE INDEX usage_summed_once ON usage_summed ((true))');
  await knex.raw('INSERT INTO usage_summed SELECT now()');
}

const ADDED = 'SELECT 1 AS sign, * FROM added';
const REMOVED = 'SELECT -1 AS sign, * FROM removed';

interface Trigger {
  readonly event: string;
  readonly tables: string;
  readonly records: string;
}

const TRIGGERS: readonly Trigger[] = [
  { event: 'insert', tables: 'NEW TABLE AS added', records: ADDED },
  {
    event: 'update',
    tables: 'OLD TABLE AS removed NEW TABLE AS added',
    records: `${ADDED} UNION ALL ${REMOVED}`,
  },
  { event: 'delete', tables: 'OLD TABLE AS removed', records: REMOVED },
];

/**
 * Creates a trigger that adds the records written, changed or deleted before `usage_summed.until`, which is seldom. Writers take turns:
 * a statement that inserts and updates adds twice, and two of those could otherwise wait for each other's sums.
 */
async function createTrigger(knex: Knex, { event, tables, records }: Trigger): Promise<void> {
  const body = `DECLARE
        summed timestamptz := (SELECT until FROM usage_summed);
      BEGIN
        IF EXISTS (SELECT FROM (${records}) AS record WHERE created_at < summed) THEN
          PERFORM FROM usage_summed FOR UPDATE;
          ${add(`SELECT * FROM (${records}) AS record WHERE created_at < summed`)};
        END IF;
        RETURN NULL;
      END`;
  await knex.raw(`CREATE FUNCTION sum_usage_after_${event}() RETURNS trigger LANGUAGE plpgsql AS $sum$ ${body} $sum$`);
  await knex.raw(`CREATE TRIGGER sum_usage_after_${event} AFTER ${event} ON usage_records REFERENCING ${tables}
    FOR EACH STATEMENT EXECUTE FUNCTION sum_usage_after_${event}()`);
}

/**
 * Creates the function that adds the records from `usage_summed.until` up to a time and moves `until`. Adding many records at once
 * takes about half of what adding each as it is written would cost.
 *
 * The function waits for processes that write records and makes others wait until it has committed. A trigger therefore sees `until`
 * either before the change, and the function finds the trigger's records, or after it. `most` bounds how long that takes. The function
 * returns whether more records are left.
 */
async function createRollUp(knex: Knex): Promise<void> {
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

/** Returns the statement that adds `records`, each with a `sign`. It takes rows in one order, so that writers never wait in a circle. */
function add(records: string): string {
  return `
  INSERT INTO usage_sums AS there (${KEY}, ${MEASURES.join()}, ${FIRST_TOKENS.join()})
  SELECT ${KEY}, ${MEASURES.map((name) => `sum(${name})`).join()},
    ${FIRST_TOKENS.map((_, at) => `sum(calls) FILTER (WHERE first_token = ${at})`).join()}
  FROM (
    SELECT ${KEY}, first_token, sum(sign * calls) AS calls,
      coalesce(sum(sign * calls) FILTER (WHERE status >= 400 OR error_code IS NOT NULL), 0) AS failed,
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
