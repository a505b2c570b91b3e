import type { Knex } from 'knex';

/**
 * Adds to an API key when it expires, the addresses that it may be used from, and the secret that a rotation replaced with the time at
 * which that one ends. A node of the version before knows none of them.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(
    `ALTER TABLE api_keys ADD COLUMN expires_at timestamptz, ADD COLUMN allowed_addresses jsonb,
       ADD COLUMN previous_hash text, ADD COLUMN previous_until timestamptz`,
  );
}
