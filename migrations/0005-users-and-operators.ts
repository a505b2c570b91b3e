import type { Knex } from 'knex';

/**
 * Creates console users with their roles and teams, invitations, operators' tokens, their sessions, one-time sign-in links, and counts of sign-in
 * attempts. The database keeps only SHA-256 of session tokens, of links and invitations, and of the e-mail and network addresses for which
 * attempts are counted.
 *
 * A user may be bound to one identity of a provider, and an identity to one user. The name of an operator's token is never reused, so that
 * the audit log always says which token made a change.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('users', (table) => {
    table.comment('Users of the console, with the identity that each is bound to.');
    table.uuid('id').primary();
    table.uuid('account_id').notNullable().references('accounts.id');
    table.text('email').notNullable();
    table.text('password_hash').notNullable();
    table.text('role').notNullable().defaultTo('owner').checkIn(['owner', 'admin', 'member', 'viewer']);
    // A removed user keeps its row, because API keys, usage records and spending still name it. Its address is free for another user.
    table.text('status').notNullable().defaultTo('active').checkIn(['active', 'disabled', 'removed']);
    table.timestamp('created_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    table.timestamp('password_changed_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    table.text('identity_issuer');
    table.text('identity_subject');
    table.timestamp('identity_bound_at', { useTz: true });
    // Until when the keys of a bound user in teams work without another sign-in with the provider.
    table.timestamp('confirmed_until', { useTz: true });
    // Whether an invitation made the user, which proves no address, and no provider has confirmed its address since.
    table.boolean('is_invited').notNullable().defaultTo(false);
    table.unique(['email'], { predicate: knex.whereRaw("status <> 'removed'"), useConstraint: false });
    table.index(['account_id', 'id']);
    table.unique(['identity_issuer', 'identity_subject']);
    table.check(
      'num_nulls(identity_issuer, identity_subject, identity_bound_at) IN (0, 3)',
      [],
      'users_identity_whole',
    );
  });
  await knex.schema.createTable('team_members', (table) => {
    table.comment('The users who are members of a team. A user may be in several teams of its account.');
    table.uuid('team_id').notNullable().references('teams.id');
    table.uuid('user_id').notNullable().references('users.id').index();
    table.primary(['team_id', 'user_id']);
  });
  await knex.schema.createTable('invitations', (table) => {
    table.comment('Invitations that are not accepted yet, by SHA-256 of their token.');
    table.uuid('id').primary();
    table.uuid('account_id').notNullable().references('accounts.id');
    table.specificType('token_hash', 'char(64)').notNullable().unique();
    table.text('email').notNullable();
    table.text('role').notNullable().checkIn(['owner', 'admin', 'member', 'viewer']);
    table.jsonb('team_ids').notNullable();
    // The actor who invited. The invitations of a user end when the user is removed, disabled or gets another role.
    table.text('invited_by').notNullable().index();
    table.timestamp('created_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    table.timestamp('expires_at', { useTz: true }).notNullable();
    table.unique(['account_id', 'email']);
    table.index(['account_id', 'id']);
    table.index(['expires_at']);
  });
  await knex.schema.createTable('user_sessions', (table) => {
    table.comment('Open sessions of the console, by SHA-256 of their token.');
    table.specificType('token_hash', 'char(64)').primary();
    table.uuid('user_id').notNullable().references('users.id').onDelete('CASCADE');
    table.timestamp('created_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    table.timestamp('expires_at', { useTz: true }).notNullable();
    table.timestamp('used_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    table.integer('idle_seconds').notNullable().defaultTo(43_200);
    table.index(['user_id']);
    table.index(['expires_at']);
  });
  await knex.schema.createTable('sign_in_links', (table) => {
    table.comment('Links that sign a user in once, by SHA-256.');
    table.specificType('token_hash', 'char(64)').primary();
    table.uuid('user_id').notNullable().references('users.id').onDelete('CASCADE');
    table.timestamp('created_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
    table.timestamp('expires_at', { useTz: true }).notNullable();
    table.index(['user_id']);
    table.index(['expires_at']);
  });
  await knex.schema.createTable('sign_in_attempts', (table) => {
    table.comment('Attempts to sign in, counted by SHA-256 of an e-mail or network address.');
    table.specificType('subject', 'char(64)').primary();
    table.integer('tries').notNullable();
    table.timestamp('tried_at', { useTz: true }).notNullable();
    table.timestamp('next_at', { useTz: true }).notNullable();
    table.index(['tried_at']);
  });
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
  await knex.schema.createTable('operator_sessions', (table) => {
    table.comment('Open sessions of the page of operators, by SHA-256 of their token.');
    table.specificType('token_hash', 'character(64)').primary();
    table
      .specificType('operator_token', 'character(64)')
      .notNullable()
      .comment('SHA-256 of the token that opened it. Of ADMIN_TOKEN an HMAC with the token of the session.');
    table.timestamp('created_at').notNullable();
    table.timestamp('expires_at').notNullable().index();
    table.timestamp('used_at').notNullable();
    table.integer('idle_seconds').notNullable();
  });
}
