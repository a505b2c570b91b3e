import type { Knex } from 'knex';

/** Upstreams an operator has taken out: they stay out, on every node and after every start, until an operator brings them back. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('taken_out_upstreams', (table) => {
    table.text('name').primary();
    table.timestamp('created_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    table.text('actor').notNullable();
    table.text('reason');
  });
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.dropTable('taken_out_upstreams');
}
