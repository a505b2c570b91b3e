import type { Knex } from 'knex';

/**
 * Adds to what vendors keep the items of an answer, which calls may name one by one. They stand in the row of their answer, because an
 * answer may have many. With `fastupdate` each lookup would first read all items that wait to be sorted into the index.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('kept_objects', (table) => {
    table.specificType('items', 'uuid[]').comment('The first half of SHA-256 of the id of each item.');
    table.bigint('item_tokens').comment('What all items together come to at most. NULL where that is not known.');
  });
  await knex.raw('CREATE INDEX kept_objects_items_index ON kept_objects USING gin (items) WITH (fastupdate = off)');
}
