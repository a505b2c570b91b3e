import type { Knex } from 'knex';

/**
 * Creates the applied configurations, the proposals of prices, the nodes' reports of their configurations, the audit log, and the upstreams
 * that operators disabled. The newest configuration is in force on every node. A disabled upstream stays disabled on every node until an
 * operator enables it.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('config_revisions', (table) => {
    table.comment('Configurations as they were applied. The newest is in force.');
    table.integer('number').primary();
    table.text('revision').notNullable().index();
    table.text('text').notNullable();
    table.timestamp('created_at', { useTz: true }).notNullable();
    table.text('actor').notNullable();
    table.text('note');
    table.integer('restores').references('config_revisions.number');
  });
  await knex.schema.createTable('price_proposals', (table) => {
    table.comment(
      'Prices that a public list has otherwise. From holds_from on, the accepted rows are applied; number is the revision that has them.',
    );
    table.uuid('id').primary();
    table.timestamp('created_at', { useTz: true }).notNullable();
    table.text('source').notNullable();
    table.text('format').notNullable();
    table.text('url');
    table.jsonb('rows').notNullable();
    table.jsonb('gone').notNullable();
    table.timestamp('holds_from', { useTz: true });
    table.integer('number').references('config_revisions.number');
    table.text('actor');
    table.text('note');
    table.jsonb('forced');
    table.index(['holds_from'], 'price_proposals_waiting', {
      predicate: knex.whereRaw('number IS NULL AND holds_from IS NOT NULL'),
    });
  });
  await knex.schema.createTable('config_nodes', (table) => {
    table.comment('What each node reports of its configuration.');
    table.uuid('id').primary();
    table.text('name').notNullable();
    table.timestamp('started_at', { useTz: true }).notNullable();
    table.timestamp('seen_at', { useTz: true }).notNullable();
    table.jsonb('report').notNullable();
  });
  await knex.schema.createTable('audit_log', (table) => {
    table.comment('What was changed, by whom, with the values before and after.');
    table.uuid('id').primary();
    table.timestamp('created_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    table.text('actor').notNullable();
    table.text('action').notNullable();
    table.text('subject').notNullable();
    table.jsonb('before');
    table.jsonb('after');
    table.index(['subject', 'id']);
  });
  await knex.schema.createTable('taken_out_upstreams', (table) => {
    table.comment('Upstreams that operators disabled.');
    table.text('name').primary();
    table.timestamp('created_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    table.text('actor').notNullable();
    table.text('reason');
  });
}
