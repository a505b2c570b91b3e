import type { Knex } from 'knex';

/**
 * Creates the configurations that were applied, of which the newest is in force on every node, what each node reports of its own, and
 * the audit log.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('config_revisions', (table) => {
    table.integer('number').primary();
    table.text('revision').notNullable().index();
    table.text('text').notNullable();
    table.timestamp('created_at', { useTz: true }).notNullable();
    table.text('actor').notNullable();
    table.text('note');
    table.integer('restores').references('config_revisions.number');
  });
  await knex.schema.createTable('config_nodes', (table) => {
    table.uuid('id').primary();
    table.text('name').notNullable();
    table.timestamp('started_at', { useTz: true }).notNullable();
    table.timestamp('seen_at', { useTz: true }).notNullable();
    table.jsonb('report').notNullable();
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
