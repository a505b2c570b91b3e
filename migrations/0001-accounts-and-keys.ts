import type { Knex } from 'knex';

/**
 * Creates accounts, their teams, API keys, budgets and credits. Amounts are E8 (1e-8 USD). The database keeps only SHA-256 of a key.
 * `markup` is a factor such as `1.25`, or the name of a price list; a key without a `markup` uses that of its account.
 *
 * A scope is anything whose spending is counted and may be limited: an account (`a:<id>`), a team (`t:<id>`), a member (`m:<id>`), an API
 * key (`k:<id>`), or the value of a tag (`g:<account>:customer=4711`). A tag's name (`g:<account>:customer`) has the limits of each of its
 * values. `budgets` has the limits of all scopes. `scopes` counts the changes of a scope's budgets, so that the ledger applies them in
 * order; for an API key, its own row counts them.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('accounts', (table) => {
    table.comment('Who pays.');
    table.uuid('id').primary();
    table.text('name').notNullable();
    table.text('status').notNullable().defaultTo('active').checkIn(['active', 'frozen']);
    table.timestamp('created_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    // The account status that the ledger last received. While it differs from `status`, any process sends `status` to the ledger again.
    table.text('told_status');
    table.timestamp('changed_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    // The excess in 1e-8 USD since the account was last unfrozen: what upstreams charged above the holds (promised money) of its calls.
    table.bigInteger('excess_e8').notNullable().defaultTo(0);
    table.text('markup');
    // The balance in E8 below which an event `balance.low` is written.
    table.bigInteger('balance_low_e8');
    // What every call of the account demands of upstreams (core/catalog/demands.ts).
    table.text('require');
  });
  await knex.schema.createTable('teams', (table) => {
    table.comment('Teams of accounts.');
    table.uuid('id').primary();
    table.uuid('account_id').notNullable().references('accounts.id');
    table.text('name').notNullable();
    table.timestamp('created_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    // A deleted team keeps its row, because its revoked keys and its spending still name it. Its name is free for another team.
    table.timestamp('deleted_at', { useTz: true });
    // The names of the tags that every call of the team's keys must have, and what every such call demands of upstreams.
    table.jsonb('required_tags');
    table.text('require');
    table.unique(['account_id', 'name'], { predicate: knex.whereNull('deleted_at'), useConstraint: false });
    table.index(['account_id', 'id']);
  });
  await knex.schema.createTable('scopes', (table) => {
    table.comment(
      'Teams, and the accounts, members and tags that have or had a budget, with the revision of their limits.',
    );
    table.text('scope').primary();
    table.uuid('account_id').notNullable().references('accounts.id').index();
    table.integer('rev').notNullable().defaultTo(0);
    // The `rev` that the ledger last received. While it is lower than `rev`, any process sends the limits to the ledger again.
    table.integer('told_rev').notNullable().defaultTo(-1);
    // When `rev` last changed. Verification accepts spending above a limit that was lowered at about that time.
    table.timestamp('changed_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
  });
  await knex.schema.createTable('budgets', (table) => {
    table.comment('Limits of spending of accounts, teams, members, API keys and tags, one per window of time.');
    table.uuid('id').primary();
    table.uuid('account_id').notNullable().references('accounts.id');
    table.text('scope').notNullable();
    // The name and the value of a tag, if the budget limits the calls that carry it.
    table.text('tag');
    table.text('value');
    table.text('window').notNullable().checkIn(['total', 'day', 'week', 'month']);
    table.bigInteger('limit_e8').notNullable();
    // The percentages of the limit whose reaching is reported.
    table.jsonb('thresholds').notNullable().defaultTo('[50, 80, 100]');
    table.timestamp('created_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    table.unique(['scope', 'window']);
    table.index(['account_id', 'id']);
  });
  await knex.schema.createTable('api_keys', (table) => {
    table.comment('API keys of accounts, by SHA-256, with their limits per minute.');
    table.uuid('id').primary();
    table.uuid('account_id').notNullable().references('accounts.id');
    table.text('name').notNullable();
    table.specificType('hash', 'char(64)').notNullable().unique();
    table.text('prefix').notNullable();
    table.text('suffix').notNullable();
    table.text('status').notNullable().defaultTo('active').checkIn(['active', 'revoked']);
    table.integer('rev').notNullable().defaultTo(0);
    table.jsonb('allowed_models');
    table.timestamp('created_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    table.timestamp('revoked_at', { useTz: true });
    table.bigInteger('calls_per_minute');
    table.bigInteger('tokens_per_minute');
    // The `rev` (revision of the key's settings) that the ledger last received. Like `told_status` of accounts, it shows whether to send again.
    table.integer('told_rev').notNullable().defaultTo(-1);
    table.timestamp('changed_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    // Whether the key's calls may ask how the gateway routed them (`x-tollgate-debug`).
    table.boolean('debug').notNullable().defaultTo(false);
    table.text('markup');
    table.timestamp('expires_at', { useTz: true });
    table.jsonb('allowed_addresses');
    // The hash of the secret that a rotation replaced, and until when the gateway still accepts that secret.
    table.text('previous_hash');
    table.timestamp('previous_until', { useTz: true });
    // The excess in E8: what upstreams charged above the holds of the key's calls because of the calls' content.
    table.bigInteger('excess_e8').notNullable().defaultTo(0);
    // The team and the member (a row of `users`) to which the calls of the key belong.
    table.uuid('team_id').references('teams.id').index();
    table.uuid('member_id').index();
    // Until when a key of a team works if the identity provider of its member confirms the member no more; `confirmed_until` of the member.
    table.timestamp('member_until', { useTz: true });
    // The names of the tags that every call of the key must have, and what it demands of upstreams, besides those of its team and account.
    table.jsonb('required_tags');
    table.text('require');
    table.index(['account_id', 'id']);
    table.index(['id'], 'api_keys_excess_index', { predicate: knex.whereRaw("excess_e8 > 0 AND status = 'active'") });
  });
  await knex.schema.createTable('credits', (table) => {
    table.comment('Credits and debits of operators, each once per idempotency key.');
    table.uuid('id').primary();
    table.uuid('account_id').notNullable().references('accounts.id');
    table.bigInteger('amount_e8').notNullable();
    table.text('idempotency_key').notNullable();
    table.text('note');
    table.timestamp('created_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    // The balance after this credit, stored when the credit's entry was dropped with its month. Without it the credit would count as never sent.
    table.bigInteger('dropped_posted_e8');
    table.unique(['account_id', 'idempotency_key']);
  });
  await knex.schema.createTable('account_rates', (table) => {
    table.comment('How often each account has lately done what is limited by rate.');
    table.uuid('account_id').notNullable().references('accounts.id');
    table.text('action').notNullable();
    table.timestamp('window_started_at', { useTz: true, precision: 3 }).notNullable();
    table.integer('made').notNullable();
    table.primary(['account_id', 'action']);
  });
}
