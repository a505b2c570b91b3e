import type { Knex } from 'knex';

/** Tells this database's sandboxes from those of others at the same supplier, where the configuration does not say it. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('sandbox_installation', (table) => {
    table.uuid('id').primary();
  });
  await knex.raw('INSERT INTO sandbox_installation (id) VALUES (gen_random_uuid())');
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.dropTable('sandbox_installation');
}
