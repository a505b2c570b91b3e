import type { Knex } from 'knex';

/**
 * Adds what customers pay instead of the upstream's price, of an account and of a key: a factor such as `1.25`, or the name of a price
 * list. A key without one has its account's. And for each call what its upstreams charge, in units of 1e-8 USD.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE accounts ADD COLUMN markup text');
  await knex.raw('ALTER TABLE api_keys ADD COLUMN markup text');
  await knex.raw('ALTER TABLE usage_records ADD COLUMN upstream_cost_e8 bigint');
}
