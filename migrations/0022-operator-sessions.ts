import type { Knex } from 'knex';

/** Keeps the open sessions of the operator's page, and finds charges that took less than was due. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('operator_sessions', (table) => {
    table.comment('Open sessions of the page of operators, by SHA-256 of their token.');
    table.specificType('token_hash', 'character(64)').primary();
    table
      .specificType('operator_token', 'character(64)')
      .notNullable()
      .comment('SHA-256 of the token that opened it. Of ADMIN_TOKEN an HMAC with the token of the session.');
    table.timestamp('created_at').notNullable();
    table.timestamp('expires_at').notNullable().index();
    table.timestamp('used_at').notNullable();
    table.integer('idle_seconds').notNullable();
  });
  await knex.raw('CREATE INDEX ledger_entries_by_shortfall ON ledger_entries (rid) WHERE shortfall_e8 > 0');
}
