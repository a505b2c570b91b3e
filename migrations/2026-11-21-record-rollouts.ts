import type { Knex } from 'knex';

/** In which rollout a call was, at which of its stages and in which group; null for most. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('usage_records', (table) => {
    table.text('rollout');
    table.integer('rollout_stage');
    table.text('rollout_arm');
  });
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('usage_records', (table) => {
    table.dropColumns('rollout', 'rollout_stage', 'rollout_arm');
  });
}
