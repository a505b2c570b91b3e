import type { Knex } from 'knex';

/**
 * A token of a port is valid as long as the API key that made it. Tokens from before name no key: they are removed, and their
 * ports have to be opened again.
 */
export async function up(knex: Knex): Promise<void> {
  await knex('sandbox_ports').delete();
  await knex.schema.alterTable('sandbox_ports', (table) => {
    table.uuid('key_id').notNullable().references('api_keys.id');
  });
}
