import type { Knex } from 'knex';

/**
 * Creates the state of each rollout, by its name, and the nodes' measurements. `run` gets a new value when a rollout starts again, or when
 * an operator changes the stages that it has already reached. `shares` has the shares of all stages, from which nodes find the current
 * stage after an operator changed the stages. `followed_at` is when a node last watched the rollout, because time that no node watched does
 * not count towards a stage.
 *
 * All nodes add their counts of each run to `rollout_counts`. `counted` names the measure and, for a time or cost, its bucket.
 * `rollout_accounts` has the number of calls of each account since the guards last compared both groups.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('rollouts', (table) => {
    table.comment('How far each rollout has come.');
    table.text('name').primary();
    table.text('definition').notNullable();
    table.uuid('run').notNullable();
    table.text('status').notNullable();
    table.integer('stage').notNullable();
    table.timestamp('stage_since', { useTz: true }).notNullable();
    table.timestamp('changed_at', { useTz: true }).notNullable();
    table.text('reason');
    table.jsonb('looks').notNullable();
    table.jsonb('shares').notNullable().defaultTo('[]');
    table.timestamp('followed_at', { useTz: true }).notNullable().defaultTo(knex.fn.now());
  });
  await knex.schema.createTable('rollout_counts', (table) => {
    table.comment('Counted calls, times and costs of each group of a rollout, by run and stage.');
    table.uuid('run').notNullable();
    table.integer('stage').notNullable();
    table.text('group_name').notNullable();
    table.text('counted').notNullable();
    table.bigInteger('count').notNullable();
    table.primary(['run', 'stage', 'group_name', 'counted']);
  });
  await knex.schema.createTable('rollout_accounts', (table) => {
    table.comment('Calls of each account since the guards of a rollout looked last.');
    table.uuid('run').notNullable();
    table.uuid('account_id').notNullable();
    table.integer('calls').notNullable();
    table.primary(['run', 'account_id']);
  });
}
