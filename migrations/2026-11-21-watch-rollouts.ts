import type { Knex } from 'knex';

/**
 * The shares of the stages a rollout goes through, by which its place is found when they are changed under it; and when a node has
 * last watched it, for time in which nobody does is not time it has held.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('rollouts', (table) => {
    table.jsonb('shares').notNullable().defaultTo('[]');
    table.timestamp('followed_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
  });
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('rollouts', (table) => {
    table.dropColumns('shares', 'followed_at');
  });
}
