import type { Knex } from 'knex';

/**
 * What the ledger decided, for ever: one row per entry, chained per account by `seq` and `posted_e8`
 * (`posted[n] = posted[n-1] + amount[n]`). `created_at` is the time inside the reservation's UUIDv7, so the unique key can
 * hold it without weakening "once per reservation and kind".
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('ledger_entries', (table) => {
    table.uuid('account_id').notNullable();
    table.bigInteger('seq').notNullable();
    table.uuid('rid').notNullable();
    table.text('kind').notNullable().checkIn(['credit', 'charge', 'release', 'expire']);
    table.uuid('key_id');
    table.bigInteger('amount_e8').notNullable();
    table.bigInteger('posted_e8').notNullable();
    table.bigInteger('shortfall_e8').notNullable().defaultTo(0);
    table.timestamp('created_at', { useTz: true }).notNullable();
    table.timestamp('written_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    table.unique(['account_id', 'rid', 'kind', 'created_at']);
    table.index(['account_id', 'seq']);
    table.index(['key_id']);
  });
  await knex.schema.createTable('usage_records', (table) => {
    table.text('request_id').notNullable();
    table.timestamp('created_at', { useTz: true, precision: 3 }).notNullable();
    table.uuid('rid');
    table.uuid('account_id').notNullable();
    table.uuid('key_id').notNullable();
    table.text('protocol').notNullable();
    table.text('path').notNullable();
    table.text('strategy');
    table.text('model_requested');
    table.text('model');
    table.text('upstream');
    table.integer('attempts').notNullable();
    table.boolean('fallback').notNullable();
    table.boolean('stream').notNullable();
    table.integer('status').notNullable();
    table.text('source').notNullable();
    table.text('error_code');
    table.bigInteger('input_tokens');
    table.bigInteger('output_tokens');
    table.bigInteger('total_tokens');
    table.bigInteger('cache_creation_tokens');
    table.bigInteger('cache_read_tokens');
    table.bigInteger('cost_e8').notNullable();
    table.text('billing').notNullable().checkIn(['actual', 'estimated', 'released', 'partial', 'expired']);
    table.integer('response_time_ms').notNullable();
    table.integer('first_token_ms');
    table.text('config_revision').notNullable();
    table.unique(['request_id', 'created_at']);
    table.index(['account_id', 'created_at', 'request_id']);
  });
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.dropTable('usage_records');
  await knex.schema.dropTable('ledger_entries');
}
