import type { Knex } from 'knex';

/** Creates the upstreams that operators disabled: they stay disabled on every node and after every start until an operator enables them. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('taken_out_upstreams', (table) => {
    table.text('name').primary();
    table.timestamp('created_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    table.text('actor').notNullable();
    table.text('reason');
  });
}
