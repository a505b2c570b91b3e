import type { Knex } from 'knex';

/**
 * Which incarnation of an instance was confirmed last: one that was replaced or started anew is not taken for it. A key of an
 * operation is the caller's for one verb: what a creation was named with can be used once more to end it.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('sandboxes', (table) => {
    table.text('incarnation');
  });
  await knex.schema.raw('DROP INDEX sandbox_operations_key');
  await knex.schema.raw(
    `CREATE UNIQUE INDEX sandbox_operations_key ON sandbox_operations (sandbox_id, type, idempotency_key)
     WHERE idempotency_key IS NOT NULL`,
  );
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.raw('DROP INDEX sandbox_operations_key');
  await knex.schema.raw(
    `CREATE UNIQUE INDEX sandbox_operations_key ON sandbox_operations (sandbox_id, idempotency_key)
     WHERE type IN ('CREATE', 'SUSPEND', 'RESUME', 'TERMINATE') AND idempotency_key IS NOT NULL`,
  );
  await knex.schema.alterTable('sandboxes', (table) => {
    table.dropColumn('incarnation');
  });
}
