import type { Knex } from 'knex';

/**
 * Sessions end some time after their last use. Links that sign somebody in once. And who tries to sign in how often: by
 * SHA-256 of an address of e-mail or network, so that guessing is slowed by all nodes together.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('user_sessions', (table) => {
    table.timestamp('used_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    table.integer('idle_seconds').notNullable().defaultTo(43_200);
  });
  await knex.schema.createTable('sign_in_links', (table) => {
    table.specificType('token_hash', 'char(64)').primary();
    table.uuid('user_id').notNullable().references('users.id').onDelete('CASCADE');
    table.timestamp('created_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    table.timestamp('expires_at', { useTz: true }).notNullable();
    table.index(['user_id']);
    table.index(['expires_at']);
  });
  await knex.schema.createTable('sign_in_attempts', (table) => {
    table.specificType('subject', 'char(64)').primary();
    table.integer('tries').notNullable();
    table.timestamp('tried_at', { useTz: true }).notNullable();
    table.timestamp('next_at', { useTz: true }).notNullable();
    table.index(['tried_at']);
  });
}

export async function down(knex: Knex): Promise<void> {
  for (const table of ['sign_in_attempts', 'sign_in_links']) await knex.schema.dropTable(table);
  await knex.schema.alterTable('user_sessions', (table) => {
    table.dropColumns('used_at', 'idle_seconds');
  });
}
