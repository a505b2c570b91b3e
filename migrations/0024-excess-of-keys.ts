import type { Knex } from 'knex';

/** Adds to each key what upstreams charged above the holds of its calls because of what they asked, in units of 1e-8 USD. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE api_keys ADD COLUMN excess_e8 bigint NOT NULL DEFAULT 0');
  await knex.raw("CREATE INDEX api_keys_excess_index ON api_keys (id) WHERE excess_e8 > 0 AND status = 'active'");
}
