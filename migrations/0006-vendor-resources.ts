import type { Knex } from 'knex';

/**
 * Creates the objects that vendors keep for accounts: a call may only name an object that the gateway returned to the same account. The row
 * of a stored model response also has the response's items. The index of items has `fastupdate` off. Otherwise each lookup would first read
 * all items that Postgres has not yet sorted into the index.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('vendor_resources', (table) => {
    table.comment('Objects that vendors keep, by SHA-256 of their id, and the account whose call made each.');
    table.text('kind').notNullable();
    table.binary('hash').notNullable();
    table.text('upstream').notNullable();
    table.uuid('account_id').notNullable();
    table.text('credential').notNullable();
    // The token counts that the vendor reported for the object; NULL if they are no upper bound for the tokens in the object.
    table.bigint('input_tokens');
    table.bigint('output_tokens');
    table.specificType('items', 'uuid[]').comment('The first half of SHA-256 of the id of each item.');
    table.timestamp('reported_at', { useTz: true }).notNullable();
    table.timestamp('expires_at', { useTz: true }).notNullable().index();
    table.primary(['kind', 'hash', 'upstream']);
    table.index(['account_id', 'reported_at']);
  });
  await knex.raw(
    'CREATE INDEX vendor_resources_items_index ON vendor_resources USING gin (items) WITH (fastupdate = off)',
  );
}
