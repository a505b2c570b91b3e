import type { Knex } from 'knex';

/** The balance after a credit whose entry was dropped with its month: without either it would look like one that was never sent. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('credits', (table) => {
    table.bigInteger('dropped_posted_e8');
  });
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('credits', (table) => {
    table.dropColumn('dropped_posted_e8');
  });
}
