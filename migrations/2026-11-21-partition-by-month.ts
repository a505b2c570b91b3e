import type { Knex } from 'knex';

/** The tables that grow with every call, with the keys and indexes each of their partitions has. */
const TABLES: Readonly<Record<string, { readonly unique: string; readonly index: string }>> = {
  ledger_entries: { unique: 'account_id, rid, kind, created_at', index: 'account_id, seq' },
  usage_records: { unique: 'request_id, created_at', index: 'account_id, created_at, request_id' },
};

/**
 * Both tables become partitioned by month. What is there already becomes the first partition as it stands, up to the end of
 * the month, so that nothing is copied; a default partition takes what no month was made for.
 *
 * Beside them: where each account's chain ends (`ledger_accounts`) and what each key has spent on each day, UTC
 * (`key_spending`), kept by whoever writes entries, so that a ledger is rebuilt without reading every entry there is. And
 * `ledger_checkpoints`: where an account's chain began again after its older entries were dropped.
 */
export async function up(knex: Knex): Promise<void> {
  const { rows } = await knex.raw<{ rows: { last: string; end: string }[] }>(`
    SELECT to_char(month, 'YYYY_MM') AS last, to_char(month + interval '1 month', 'YYYY-MM-DD') AS end
    FROM (SELECT date_trunc('month', greatest(now(), (SELECT max(created_at) FROM ledger_entries),
      (SELECT max(created_at) FROM usage_records)) AT TIME ZONE 'UTC') AS month) AS latest`);
  const [month] = rows;
  if (month === undefined) throw new Error('the database does not know what month it is');
  for (const [table, { unique, index }] of Object.entries(TABLES)) {
    const first = `${table}_to_${month.last}`;
    await knex.raw(`ALTER TABLE ${table} RENAME TO ${first}`);
    await renameIndexes(knex, first);
    await knex.raw(
      `CREATE TABLE ${table} (LIKE ${first} INCLUDING DEFAULTS INCLUDING CONSTRAINTS) PARTITION BY RANGE (created_at)`,
    );
    await knex.raw(`ALTER TABLE ${table} ADD CONSTRAINT ${table}_once UNIQUE (${unique})`);
    await knex.raw(`CREATE INDEX ${table}_by_account ON ${table} (${index})`);
    await knex.raw(
      `ALTER TABLE ${table} ATTACH PARTITION ${first} FOR VALUES FROM (MINVALUE) TO ('${month.end} 00:00:00+00')`,
    );
    await knex.raw(`CREATE TABLE ${table}_other PARTITION OF ${table} DEFAULT`);
  }
  await createSums(knex);
}

/** The new table's names are the old one's: these make room. */
async function renameIndexes(knex: Knex, table: string): Promise<void> {
  const { rows } = await knex.raw<{ rows: { name: string }[] }>(
    'SELECT indexname AS name FROM pg_indexes WHERE tablename = ? AND schemaname = current_schema()',
    [table],
  );
  // Nobody reads entries by key: what a key has spent is in key_spending.
  await knex.raw('DROP INDEX IF EXISTS ledger_entries_key_id_index');
  for (const { name } of rows.filter((row) => row.name !== 'ledger_entries_key_id_index')) {
    await knex.raw('ALTER INDEX ?? RENAME TO ??', [name, `${name}_first`]);
  }
}

async function createSums(knex: Knex): Promise<void> {
  await knex.schema.createTable('ledger_accounts', (table) => {
    table.uuid('account_id').primary();
    table.bigInteger('seq').notNullable();
    table.bigInteger('posted_e8').notNullable();
  });
  await knex.schema.createTable('key_spending', (table) => {
    table.uuid('key_id').notNullable();
    table.date('day').notNullable();
    table.bigInteger('spent_e8').notNullable();
    table.primary(['key_id', 'day']);
  });
  await knex.schema.createTable('ledger_checkpoints', (table) => {
    table.uuid('account_id').notNullable();
    table.bigInteger('seq').notNullable();
    table.bigInteger('posted_e8').notNullable();
    table.timestamp('created_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    table.primary(['account_id', 'seq']);
  });
  await knex.raw(`INSERT INTO ledger_accounts SELECT DISTINCT ON (account_id) account_id, seq, posted_e8
    FROM ledger_entries ORDER BY account_id, seq DESC`);
  await knex.raw(`INSERT INTO key_spending
    SELECT key_id, (written_at AT TIME ZONE 'UTC')::date, -sum(amount_e8)
    FROM ledger_entries WHERE kind = 'charge' GROUP BY 1, 2`);
}

export async function down(knex: Knex): Promise<void> {
  for (const table of ['ledger_accounts', 'key_spending', 'ledger_checkpoints']) await knex.schema.dropTable(table);
  for (const [table, { unique, index }] of Object.entries(TABLES)) {
    await knex.raw(`ALTER TABLE ${table} RENAME TO ${table}_by_month`);
    await knex.raw(`CREATE TABLE ${table} (LIKE ${table}_by_month INCLUDING DEFAULTS INCLUDING CONSTRAINTS)`);
    await knex.raw(`INSERT INTO ${table} SELECT * FROM ${table}_by_month`);
    await knex.raw(`DROP TABLE ${table}_by_month`);
    await knex.raw(`ALTER TABLE ${table} ADD UNIQUE (${unique})`);
    await knex.raw(`CREATE INDEX ON ${table} (${index})`);
  }
}
