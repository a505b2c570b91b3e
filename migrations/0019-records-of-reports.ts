import type { Knex } from 'knex';

/**
 * Adds what entries of reports need. A report charges many calls by one entry, and `calls` of the entry says how many usage records
 * it has; it is null for all other entries. Each of those records names the report, and is the only one of its reservation.
 *
 * Leaves only the indexes that some query needs, because each costs Postgres about 1 µs for each call. Sums of two filters at once are
 * read from the records now: an index that has all columns of a sum costs three times as much.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE usage_records ADD COLUMN report_id uuid');
  await knex.raw('ALTER TABLE ledger_entries ADD COLUMN calls int');
  for (const name of DROPPED) await knex.raw(`DROP INDEX ${name}`);
  for (const [name, on] of Object.entries(INDEXES)) await knex.raw(`CREATE INDEX ${name} ON ${on}`);
  await knex.raw(
    'CREATE UNIQUE INDEX usage_records_by_reservation ON usage_records (rid, created_at) WHERE rid IS NOT NULL',
  );
}

const DROPPED = [
  ...['account', 'key', 'model', 'model_of_all', 'upstream', 'upstream_of_all', 'failure', 'failure_of_all'].map(
    (name) => `usage_records_by_${name}`,
  ),
  'upstream_attempts_by_upstream',
];

const MODEL = 'coalesce(model, model_requested)';

/**
 * Filters of an account and of all accounts share an index. Its last column is the account, so that Postgres passes over the records
 * of others without reading them. Attempts are summed by days, for which their order in time suffices.
 */
const INDEXES: Readonly<Record<string, string>> = {
  usage_records_by_account: 'usage_records (account_id, created_at, request_id)',
  usage_records_by_key: 'usage_records (key_id, created_at)',
  usage_records_by_model: `usage_records (${MODEL}, created_at, account_id)`,
  usage_records_by_upstream: 'usage_records (upstream, created_at, account_id)',
  usage_records_by_failure: 'usage_records (status, created_at, account_id) WHERE status <> 200',
  upstream_attempts_by_time: 'upstream_attempts USING brin (created_at)',
};
