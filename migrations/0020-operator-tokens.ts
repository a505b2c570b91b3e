import type { Knex } from 'knex';

/**
 * Adds the named tokens of operators. Of a token only its hash is kept. A name belongs to one token for good, so that the audit log,
 * which names it, says for ever which token made a change.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE operator_tokens (
      id uuid PRIMARY KEY,
      name text NOT NULL UNIQUE,
      role text NOT NULL CHECK (role IN ('metrics', 'read', 'write', 'owner')),
      hash text NOT NULL UNIQUE,
      suffix text NOT NULL,
      created_at timestamptz NOT NULL,
      expires_at timestamptz,
      revoked_at timestamptz,
      last_used_at timestamptz
    )`);
  await knex.raw(
    `COMMENT ON TABLE operator_tokens IS 'Named tokens of operators, by their SHA-256. ADMIN_TOKEN is not among them.'`,
  );
}
