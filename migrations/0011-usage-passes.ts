import type { Knex } from 'knex';

/**
 * Adds what a record needs to be set beside a vendor's invoice: the passes of a call as they were charged, each with its meters, and
 * flags of what is doubtful about them. Both are null where the token counts say it all.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE usage_records ADD COLUMN passes jsonb, ADD COLUMN flags jsonb');
}
