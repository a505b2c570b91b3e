import type { Knex } from 'knex';

/** Who signs in to the console, and their open sessions: a session is a random token, of which only SHA-256 is kept. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('users', (table) => {
    table.uuid('id').primary();
    table.uuid('account_id').notNullable().references('accounts.id');
    table.text('email').notNullable().unique();
    table.text('password_hash').notNullable();
    table.text('status').notNullable().defaultTo('active').checkIn(['active', 'disabled']);
    table.timestamp('created_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    table.timestamp('password_changed_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    table.index(['account_id', 'id']);
  });
  await knex.schema.createTable('user_sessions', (table) => {
    table.specificType('token_hash', 'char(64)').primary();
    table.uuid('user_id').notNullable().references('users.id').onDelete('CASCADE');
    table.timestamp('created_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    table.timestamp('expires_at', { useTz: true }).notNullable();
    table.index(['user_id']);
    table.index(['expires_at']);
  });
}

export async function down(knex: Knex): Promise<void> {
  for (const table of ['user_sessions', 'users']) await knex.schema.dropTable(table);
}
