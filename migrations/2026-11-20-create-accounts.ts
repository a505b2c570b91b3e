import type { Knex } from 'knex';

/** Who pays and what they show. Amounts are E8 (1e-8 USD). Only SHA-256 of a key is kept. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('accounts', (table) => {
    table.uuid('id').primary();
    table.text('name').notNullable();
    table.text('status').notNullable().defaultTo('active').checkIn(['active', 'frozen']);
    table.timestamp('created_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
  });
  await knex.schema.createTable('api_keys', (table) => {
    table.uuid('id').primary();
    table.uuid('account_id').notNullable().references('accounts.id');
    table.text('name').notNullable();
    table.specificType('hash', 'char(64)').notNullable().unique();
    table.text('prefix').notNullable();
    table.text('suffix').notNullable();
    table.text('status').notNullable().defaultTo('active').checkIn(['active', 'revoked']);
    table.bigInteger('limit_e8');
    table.integer('rev').notNullable().defaultTo(0);
    table.jsonb('allowed_models');
    table.timestamp('created_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    table.timestamp('revoked_at', { useTz: true });
    table.index(['account_id', 'id']);
  });
  await knex.schema.createTable('credits', (table) => {
    table.uuid('id').primary();
    table.uuid('account_id').notNullable().references('accounts.id');
    table.bigInteger('amount_e8').notNullable();
    table.text('idempotency_key').notNullable();
    table.text('note');
    table.timestamp('created_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    table.unique(['account_id', 'idempotency_key']);
  });
  await knex.schema.createTable('audit_log', (table) => {
    table.uuid('id').primary();
    table.timestamp('created_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    table.text('actor').notNullable();
    table.text('action').notNullable();
    table.text('subject').notNullable();
    table.jsonb('before');
    table.jsonb('after');
    table.index(['subject', 'id']);
  });
}

export async function down(knex: Knex): Promise<void> {
  for (const table of ['audit_log', 'credits', 'api_keys', 'accounts']) await knex.schema.dropTable(table);
}
