import type { Knex } from 'knex';

const CHANGES = [
  'ALTER TABLE sandbox_create_rates RENAME TO account_rates',
  'ALTER TABLE account_rates RENAME COLUMN creates TO made',
  "ALTER TABLE account_rates ADD COLUMN action text NOT NULL DEFAULT 'sandbox'",
  'ALTER TABLE account_rates ALTER COLUMN action DROP DEFAULT',
  'ALTER TABLE account_rates DROP CONSTRAINT sandbox_create_rates_pkey',
  'ALTER TABLE account_rates ADD CONSTRAINT account_rates_pkey PRIMARY KEY (account_id, action)',
  'ALTER TABLE account_rates RENAME CONSTRAINT sandbox_create_rates_account_id_foreign TO account_rates_account_id_foreign',
  "COMMENT ON TABLE account_rates IS 'How often each account has lately done what is limited by rate.'",
];

/** Counts other actions of accounts beside creations of sandboxes. */
export async function up(knex: Knex): Promise<void> {
  for (const change of CHANGES) await knex.raw(change);
}
