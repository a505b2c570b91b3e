import type { Knex } from 'knex';
import { createPartitions } from './partitions';

/**
 * Creates the ledger's entries and the tables that summarize them. Entries never change. `seq` and `posted_e8` chain the entries of an
 * account: `posted[n] = posted[n-1] + amount[n]`. `created_at` is the time inside the reservation's UUIDv7, so the unique key can include
 * it and still enforce "once per reservation and kind". `of_call` is true for entries of calls, which have a usage record, and false for
 * sandboxes' holds, which have none. A node that holds money in advance reports many calls at once, and the report becomes one entry.
 * `calls` is the number of the report's usage records, and null for other entries.
 *
 * A charge counts in several scopes: in its account (`a:<id>`), its API key (`k:<id>`), and the scopes between them, which `scopes` lists,
 * for example `t:<team> m:<member>`. `scopes` is null for a charge without a team or member, and for all other entries.
 *
 * The process that writes entries also stores the end of each account's chain (`ledger_accounts`) and each scope's spending per day of UTC
 * (`scope_spending`). A recovery of the ledger therefore need not read every entry. `ledger_checkpoints` stores where an account's chain
 * continues after its older entries were dropped.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`CREATE TABLE ledger_entries (
    account_id uuid NOT NULL,
    seq bigint NOT NULL,
    rid uuid NOT NULL,
    kind text NOT NULL CHECK (kind IN ('credit', 'charge', 'release', 'expire')),
    key_id uuid,
    amount_e8 bigint NOT NULL,
    posted_e8 bigint NOT NULL,
    shortfall_e8 bigint NOT NULL DEFAULT '0',
    created_at timestamptz NOT NULL,
    written_at timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP,
    of_call boolean NOT NULL DEFAULT false,
    calls int,
    scopes text,
    CONSTRAINT ledger_entries_once UNIQUE (account_id, rid, kind, created_at)
  ) PARTITION BY RANGE (created_at)`);
  await knex.raw('CREATE INDEX ledger_entries_by_account ON ledger_entries (account_id, seq)');
  await knex.raw('CREATE INDEX ledger_entries_by_shortfall ON ledger_entries (rid) WHERE shortfall_e8 > 0');
  await knex.raw(
    `COMMENT ON TABLE ledger_entries IS 'Every entry of the ledger, in a chain per account. Entries never change.'`,
  );
  await createPartitions(knex, 'ledger_entries');
  await knex.schema.createTable('ledger_accounts', (table) => {
    table.comment("Where each account''s chain of entries ends.");
    table.uuid('account_id').primary();
    table.bigInteger('seq').notNullable();
    table.bigInteger('posted_e8').notNullable();
  });
  await knex.schema.createTable('scope_spending', (table) => {
    table.comment('What each account, team, member and API key has spent on each day of UTC.');
    table.text('scope').notNullable();
    table.date('day').notNullable();
    table.bigInteger('spent_e8').notNullable();
    table.primary(['scope', 'day']);
  });
  await knex.schema.createTable('ledger_checkpoints', (table) => {
    table.comment("Where an account''s chain continues after its older entries were dropped.");
    table.uuid('account_id').notNullable();
    table.bigInteger('seq').notNullable();
    table.bigInteger('posted_e8').notNullable();
    table.timestamp('created_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    table.primary(['account_id', 'seq']);
  });
}
