import type { Knex } from 'knex';

/**
 * Creates what accounts have made at vendors: a call may only name an object that its own account got through the gateway. Items stand
 * in the row of their answer. With `fastupdate` each lookup would first read all items that wait to be sorted into the index.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('kept_objects', (table) => {
    table.comment('Objects that vendors keep, by SHA-256 of their id, and the account whose call made each.');
    table.text('kind').notNullable();
    table.binary('hash').notNullable();
    table.text('upstream').notNullable();
    table.uuid('account_id').notNullable();
    table.text('credential').notNullable();
    // NULL where the reported tokens do not bound what the object has.
    table.bigint('input_tokens');
    table.bigint('output_tokens');
    table.specificType('items', 'uuid[]').comment('The first half of SHA-256 of the id of each item.');
    table.timestamp('reported_at', { useTz: true }).notNullable();
    table.timestamp('expires_at', { useTz: true }).notNullable().index();
    table.primary(['kind', 'hash', 'upstream']);
    table.index(['account_id', 'reported_at']);
  });
  await knex.raw('CREATE INDEX kept_objects_items_index ON kept_objects USING gin (items) WITH (fastupdate = off)');
}
