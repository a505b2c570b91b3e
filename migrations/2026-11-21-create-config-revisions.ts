import type { Knex } from 'knex';

/** Configurations as they were applied, the newest is in force on every node; and what each node says of its own. */
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
}

export async function down(knex: Knex): Promise<void> {
  for (const table of ['config_nodes', 'config_revisions']) await knex.schema.dropTable(table);
}
