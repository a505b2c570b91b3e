import type { Knex } from 'knex';

/**
 * Says which instances only some nodes can reach. A place is a driver's own word for where its instances live, such as an id of a
 * data folder; without one every node reaches them. The table says when a node last reached each place.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('sandbox_places', (table) => {
    table.text('id').primary();
    table.text('supplier').notNullable();
    table.text('host').notNullable();
    table.timestamp('seen_at', { useTz: true, precision: 3 }).notNullable();
    table.timestamp('lost_at', { useTz: true, precision: 3 });
  });
  for (const name of ['sandboxes', 'supplier_cleanup']) {
    await knex.schema.alterTable(name, (table) => {
      table.text('place');
    });
  }
  await knex.schema.raw(
    "CREATE INDEX sandboxes_place ON sandboxes (place) WHERE observed_state NOT IN ('FAILED', 'TERMINATED')",
  );
}
