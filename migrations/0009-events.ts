import type { Knex } from 'knex';

/** The feed of operators, which has the events of all accounts. The ids of accounts are the other feeds. */
const OPERATORS_FEED = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * Creates events, and the webhooks that deliver those of an account. A process that writes events first locks the row of the operators'
 * feed, until its commit. Both numbers of an event are therefore without gaps, and no smaller number appears later.
 *
 * `once` names the fact, so that an event exists once however often processes see the fact. `data` is `json`, because it keeps the order of
 * members, so that a repeated delivery has the same bytes. An event is deleted after 30 days, or at `kept_until` if that is later.
 *
 * A webhook's deliveries with a `place` are sent in that order, which is that of the account's events. Those without one wait for no other:
 * tests and repeated deliveries. `secrets` has the newest secret first; an older one signs until its `until`. While a process delivers, it
 * holds the claim of the webhook.
 */
export async function up(knex: Knex): Promise<void> {
  const time = (table: Knex.CreateTableBuilder, name: string) => table.timestamp(name, { useTz: true, precision: 3 });

  await knex.schema.createTable('event_feeds', (table) => {
    table.comment("The last number of the operators'' feed of events and of each account''s.");
    table.uuid('feed').primary();
    table.bigInteger('last').notNullable();
  });
  await knex('event_feeds').insert({ feed: OPERATORS_FEED, last: 0 });
  await knex.schema.createTable('events', (table) => {
    table.comment('What accounts and operators are alerted to, in order.');
    table.uuid('id').primary();
    table.uuid('account_id');
    table.bigInteger('sequence');
    table.bigInteger('feed_sequence').notNullable().unique();
    table.text('type').notNullable();
    table.text('once').notNullable().unique();
    table.json('data').notNullable();
    time(table, 'created_at').notNullable().index();
    time(table, 'kept_until');
    table.unique(['account_id', 'sequence']);
    table.index(['account_id', 'feed_sequence']);
  });
  await knex.schema.createTable('webhooks', (table) => {
    table.comment("Addresses that receive an account''s events.");
    table.uuid('id').primary();
    table.uuid('account_id').notNullable().references('accounts.id');
    table.text('url').notNullable();
    table.jsonb('types');
    table.text('status').notNullable().defaultTo('active').checkIn(['active', 'disabled']);
    table.jsonb('secrets').notNullable();
    time(table, 'created_at').notNullable();
    table.uuid('claim');
    time(table, 'claimed_until');
    table.index(['account_id', 'id']);
  });
  await knex.schema.createTable('webhook_deliveries', (table) => {
    table.comment('What each webhook receives, with the outcome of the last attempt.');
    table.uuid('id').primary();
    table.uuid('webhook_id').notNullable().references('webhooks.id').onDelete('CASCADE');
    table.uuid('event_id').notNullable();
    table.text('type').notNullable();
    table.bigInteger('place');
    // The body of a test, which has no event.
    table.text('body');
    table.text('status').notNullable().defaultTo('pending').checkIn(['pending', 'delivered', 'failed']);
    table.integer('attempts').notNullable().defaultTo(0);
    table.integer('response_status');
    table.text('error');
    time(table, 'next_at');
    time(table, 'first_failed_at');
    time(table, 'created_at').notNullable().index();
    table.index(['webhook_id', 'id']);
    table.index(['webhook_id', 'place'], 'webhook_deliveries_pending', {
      predicate: knex.whereRaw("status = 'pending'"),
    });
  });
  // The shipper looks for accounts among few.
  await knex.schema.alterTable('accounts', (table) => {
    table.index(['id'], 'accounts_balance_low', { predicate: knex.whereNotNull('balance_low_e8') });
  });
  // The sweeper looks for keys that expire soon.
  await knex.schema.alterTable('api_keys', (table) => {
    table.index(['expires_at'], 'api_keys_expiring', {
      predicate: knex.whereRaw("expires_at IS NOT NULL AND status = 'active'"),
    });
  });
}
