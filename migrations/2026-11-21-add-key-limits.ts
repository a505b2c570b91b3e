import type { Knex } from 'knex';

/**
 * What a key may spend in a day and a month (UTC) and ask in a minute. And what the ledger was told of accounts and keys, so
 * that a change whose process ended before it told the ledger is told by another.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('api_keys', (table) => {
    table.bigInteger('daily_limit_e8');
    table.bigInteger('monthly_limit_e8');
    table.bigInteger('calls_per_minute');
    table.bigInteger('tokens_per_minute');
    table.integer('told_rev').notNullable().defaultTo(-1);
    table.timestamp('changed_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
  });
  await knex.schema.alterTable('accounts', (table) => {
    table.text('told_status');
    table.timestamp('changed_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
  });
  await knex('api_keys').update({ told_rev: knex.ref('rev') });
  await knex('accounts').update({ told_status: knex.ref('status') });
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('api_keys', (table) => {
    table.dropColumns(
      ...['daily_limit_e8', 'monthly_limit_e8', 'calls_per_minute', 'tokens_per_minute', 'told_rev', 'changed_at'],
    );
  });
  await knex.schema.alterTable('accounts', (table) => {
    table.dropColumns('told_status', 'changed_at');
  });
}
