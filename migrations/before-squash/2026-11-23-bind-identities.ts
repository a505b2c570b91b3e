import type { Knex } from 'knex';

/** A user may be bound to one identity of a provider, and an identity to one user. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('users', (table) => {
    table.text('identity_issuer');
    table.text('identity_subject');
    table.timestamp('identity_bound_at', { useTz: true });
    table.unique(['identity_issuer', 'identity_subject']);
    table.check(
      'num_nulls(identity_issuer, identity_subject, identity_bound_at) IN (0, 3)',
      [],
      'users_identity_whole',
    );
  });
}
