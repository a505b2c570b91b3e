import type { Knex } from 'knex';

/**
 * An entry that closed the reservation of a call has a usage record, one that closed a sandbox's hold has none. The entry
 * says which it is, so that a missing record can be told from one that was never to be.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('ledger_entries', (table) => {
    table.boolean('of_call').notNullable().defaultTo(false);
  });
  await knex.raw(`UPDATE ledger_entries SET of_call = kind <> 'credit'`);
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('ledger_entries', (table) => {
    table.dropColumn('of_call');
  });
}
