import type { Knex } from 'knex';

/** Why a call went where it went: candidates with their scores, attempts with their ends. Null where there was no choice. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('usage_records', (table) => {
    table.jsonb('routing');
  });
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('usage_records', (table) => {
    table.dropColumn('routing');
  });
}
