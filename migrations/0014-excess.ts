import type { Knex } from 'knex';

/**
 * Adds what upstreams charge above the holds of calls: for each call, and for each account the sum of what its own requests caused
 * since it was last unfrozen. Both in units of 1e-8 USD.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE usage_records ADD COLUMN excess_e8 bigint');
  await knex.raw('ALTER TABLE accounts ADD COLUMN excess_e8 bigint NOT NULL DEFAULT 0');
}
