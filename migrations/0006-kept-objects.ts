import type { Knex } from 'knex';

/**
 * Creates what accounts have made at vendors: a call may only name an object that its own account got through the gateway. `number` is
 * the order in which an account's objects were last reported, so that the oldest ones give way. Items stand
 * in the row of their answer. With `fastupdate` each lookup would first read all items that wait to be sorted into the index.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('kept_objects', (table) => {
    table.comment('Objects that vendors keep, by SHA-256 of their id, and the account whose call made each.');
    table.text('kind').notNullable();
    table.binary('hash').notNullable();
    table.text('upstream').notNullable();
    table.uuid('account_id').notNullable();
    table.bigint('number').notNullable();
    table.text('credential').notNullable();
    table.text('model').notNullable();
    table.bigint('input_tokens');
    table.bigint('output_tokens');
    table.timestamp('expires_at', { useTz: true }).notNullable().index();
    table.specificType('items', 'uuid[]').comment('The first half of SHA-256 of the id of each item.');
    table.bigint('item_tokens').comment('What all items together come to at most. NULL where that is not known.');
    table.primary(['kind', 'hash', 'upstream']);
    table.unique(['account_id', 'number']);
  });
  await knex.raw('CREATE INDEX kept_objects_items_index ON kept_objects USING gin (items) WITH (fastupdate = off)');
}
