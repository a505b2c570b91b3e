import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import { createPartitions } from './partitions';

/** Creates usage records, their sums for charts and totals, and the attempts that the gateway compares with vendors' invoices. */
export async function up(knex: Knex): Promise<void> {
  await createRecords(knex);
  await createSums(knex);
  for (const trigger of TRIGGERS) await createTrigger(knex, trigger);
  await createRollUp(knex);
  await createAttempts(knex);
  await createInvoiceDays(knex);
  await createHashKey(knex);
}

/**
 * A record usually stands for one call. `calls` is above 1 if it stands for several calls that the gateway refused in the same second.
 * `rollout`, `rollout_stage` and `rollout_group` are null for a call in no rollout, and `routing` for a call without a choice of upstreams.
 *
 * `passes` lists the charged runs of models, each with its counts by meter. `flags` lists doubts about these counts. Both are null if the
 * token counts of the record already contain everything. `excess_e8` is what upstreams charged above the hold. A node may charge many calls
 * with one report; `report_id` names this report. `team_id` and `member_id` are those of the key at the time of the call, and `tags` has the
 * tags that the caller gave, by name.
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
    rollout_group text,
    routing jsonb,
    calls int NOT NULL DEFAULT 1,
    passes jsonb,
    flags jsonb,
    excess_e8 bigint,
    upstream_cost_e8 bigint,
    session_id text,
    agent_id text,
    end_user_id text,
    team_id uuid,
    member_id uuid,
    tags jsonb,
    region text,
    demands text,
    report_id uuid,
    CONSTRAINT usage_records_once UNIQUE (request_id, created_at)
  ) PARTITION BY RANGE (created_at)`);
  for (const [name, on] of Object.entries(INDEXES))
    await knex.raw(`CREATE INDEX usage_records_by_${name} ON usage_records ${on}`);
  await knex.raw(
    'CREATE UNIQUE INDEX usage_records_by_reservation ON usage_records (rid, created_at) WHERE rid IS NOT NULL',
  );
  await knex.raw(
    `COMMENT ON TABLE usage_records IS 'One row per call: what it asked for, how it ended, what it cost.'`,
  );
  await createPartitions(knex, 'usage_records');
}

/**
 * The indexes for pages of usage records. Postgres filters records by an index's first column and returns the newest first. `created_at`
 * follows that column, so a page is the end of an index, however many records match. Filters within one account and across all accounts
 * share an index. Its last column is the account, so that Postgres skips records of other accounts without reading them. Each index costs
 * Postgres about 1 µs for each call. Measurements: the bench `usage`.
 */
const INDEXES: Readonly<Record<string, string>> = {
  account: '(account_id, created_at, request_id)',
  time: '(created_at, request_id)',
  key: '(key_id, created_at)',
  model: '(coalesce(model, model_requested), created_at, account_id)',
  upstream: '(upstream, created_at, account_id)',
  failure: '(status, created_at, account_id) WHERE status <> 200',
  session: '(session_id, created_at) WHERE session_id IS NOT NULL',
  agent: '(agent_id, created_at) WHERE agent_id IS NOT NULL',
  end_user: '(end_user_id, created_at) WHERE end_user_id IS NOT NULL',
  team: '(team_id, created_at) WHERE team_id IS NOT NULL',
  member: '(member_id, created_at) WHERE member_id IS NOT NULL',
  // Any of the names may be filtered. Without these four, a rare value would read all records of an account's month: 0.5 s for 200,000.
  tag: 'USING gin (tags jsonb_path_ops) WHERE tags IS NOT NULL',
};

const MEASURES = [
  ...['calls', 'failed', 'cost_e8', 'input_tokens', 'output_tokens', 'total_tokens'],
  ...['cache_creation_tokens', 'cache_read_tokens'],
];

/** The bounds for times to the first token: four per doubling, from 16 ms to about two minutes. */
const BOUNDS_MS = Array.from({ length: 53 }, (_, at) => Math.round(2 ** (4 + at / 4)));
const FIRST_TOKENS = Array.from(
  { length: BOUNDS_MS.length + 1 },
  (_, at) => `first_token_${String(at).padStart(2, '0')}`,
);

const KEY = 'account_id, grouped_by, hour, name, status';

/**
 * `usage_sums` adds up the records of each hour: those of the whole account (`grouped_by` is `none`, `name` is empty), of each key, of each
 * model and of each upstream, by status. `first_token_NN` counts the calls whose time to the first token lies between bound NN and the next
 * one; null means 0 and takes no space. A month's chart of 10^6 records reads a few thousand rows. The sums are by hour, because days begin
 * at different times in different time zones.
 *
 * `usage_sums` contains the records before `usage_summed.until`.
 */
async function createSums(knex: Knex): Promise<void> {
  await knex.raw(`CREATE TABLE usage_sums (
    account_id uuid NOT NULL, grouped_by text NOT NULL, hour timestamptz NOT NULL, name text NOT NULL, status int NOT NULL,
    ${MEASURES.map((name) => `${name} bigint NOT NULL`).join()}, ${FIRST_TOKENS.map((name) => `${name} int`).join()},
    PRIMARY KEY (${KEY})) WITH (fillfactor = 80)`);
  // The index for the query of the accounts with the highest recent spending.
  await knex.raw(`CREATE INDEX usage_sums_by_hour ON usage_sums (hour) WHERE grouped_by = 'none'`);
  await knex.raw('CREATE TABLE usage_summed (until timestamptz NOT NULL)');
  await knex.raw('CREATE UNIQUE INDEX usage_summed_once ON usage_summed ((true))');
  await knex.raw('INSERT INTO usage_summed SELECT now()');
  await knex.raw(
    `COMMENT ON TABLE usage_sums IS 'Sums of usage records by hour, for the account and each of its keys, models and upstreams.'`,
  );
  await knex.raw(`COMMENT ON TABLE usage_summed IS 'Until when usage records are in usage_sums. It has one row.'`);
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
 * Creates a trigger that updates `usage_sums` if a statement writes, changes or deletes records before `usage_summed.until`, which is rare.
 * Such statements run one after the other: each may change the sums twice, and two at once could deadlock.
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
 * Creates the function that adds the records from `usage_summed.until` up to a given time to `usage_sums`, and moves `until`. Adding many
 * records at once costs about half as much as adding each one when it is written.
 *
 * The function waits for processes that write records, and blocks other writers until it has committed. A trigger therefore sees either the
 * old `until`, and the function then finds the trigger's records, or the new one. `most` limits the records of one run and thereby its
 * duration. The function returns whether more records are left.
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

/** Returns the SQL that adds `records`, each times its `sign` (1 or -1), to `usage_sums`. A fixed order of rows prevents deadlocks of writers. */
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

/**
 * Creates the attempts: one row for each request that the gateway sent to an upstream, for the comparison with a vendor's invoice. A call
 * has several rows if the gateway tried several upstreams or mirrored it.
 *
 * A BRIN index suffices, because attempts are summed by days and stored in order of time. `passes` has what the upstream used, by meter; it
 * is null if that is unknown. `region` is where the upstream says it processed the call, and `declared` what the configuration said of the
 * model then. `is_reported` says that the upstream itself reported all of it. `cost_e14` is the exact cost of the passes at
 * the upstream's price in 1e-14 USD. `account_id` is null for an operator's test.
 */
async function createAttempts(knex: Knex): Promise<void> {
  await knex.raw(`CREATE TABLE upstream_attempts (
    request_id text NOT NULL,
    created_at timestamptz(3) NOT NULL,
    number int NOT NULL,
    account_id uuid,
    upstream text NOT NULL,
    credential text NOT NULL,
    model text NOT NULL,
    cause text NOT NULL,
    outcome text NOT NULL,
    status int,
    ms int NOT NULL,
    upstream_request_id text,
    region text,
    declared jsonb,
    passes jsonb,
    is_reported boolean NOT NULL,
    cost_e14 numeric NOT NULL,
    CONSTRAINT upstream_attempts_once UNIQUE (request_id, number, created_at)
  ) PARTITION BY RANGE (created_at)`);
  await knex.raw('CREATE INDEX upstream_attempts_by_time ON upstream_attempts USING brin (created_at)');
  await knex.raw(
    `COMMENT ON TABLE upstream_attempts IS 'Requests to upstreams, with what each used there. For operators.'`,
  );
  await createPartitions(knex, 'upstream_attempts');
}

/**
 * Creates the days for which a vendor's report was compared with the records, by upstream. A process claims a day, so that no other process
 * requests the report too; `compared_at` is null until the comparison is done. `difference_e8` is the vendor's charge minus the recorded
 * cost, in 1e-8 USD.
 */
async function createInvoiceDays(knex: Knex): Promise<void> {
  await knex.raw(`CREATE TABLE invoice_days (
    upstream text NOT NULL,
    day date NOT NULL,
    claimed_at timestamptz NOT NULL DEFAULT now(),
    compared_at timestamptz,
    difference_e8 numeric,
    PRIMARY KEY (upstream, day)
  )`);
  await knex.raw(`COMMENT ON TABLE invoice_days IS 'Days of which a vendor''s invoice was compared with the records.'`);
}

/** Creates the secret key with which nodes hash ids of sessions and agents that do not look like ids. All nodes need the same key. */
async function createHashKey(knex: Knex): Promise<void> {
  await knex.raw('CREATE TABLE session_hash_key (secret text NOT NULL)');
  await knex.raw('CREATE UNIQUE INDEX session_hash_key_once ON session_hash_key ((true))');
  await knex('session_hash_key').insert({ secret: randomBytes(32).toString('base64url') });
  await knex.raw(
    `COMMENT ON TABLE session_hash_key IS 'The key of the hash of ids of sessions and agents. It has one row.'`,
  );
}
