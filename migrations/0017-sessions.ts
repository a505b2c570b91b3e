import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';

/**
 * Adds to each call the session and the agent that it belongs to, as its client names them, so that the cost of a task can be found.
 * The indexes leave out calls without them: pages are filtered by either. What does not look like an id is kept as a hash, whose key
 * is in the database because all nodes need the same one.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE usage_records ADD COLUMN session_id text, ADD COLUMN agent_id text');
  for (const name of ['session', 'agent'])
    await knex.raw(
      `CREATE INDEX usage_records_by_${name} ON usage_records (${name}_id, created_at) WHERE ${name}_id IS NOT NULL`,
    );
  await knex.raw('CREATE TABLE session_hash_key (secret text NOT NULL)');
  await knex.raw('CREATE UNIQUE INDEX session_hash_key_once ON session_hash_key ((true))');
  await knex('session_hash_key').insert({ secret: randomBytes(32).toString('base64url') });
  await knex.raw(
    `COMMENT ON TABLE session_hash_key IS 'The key of the hash of ids of sessions and agents. It has one row.'`,
  );
}
