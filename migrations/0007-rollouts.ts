import type { Knex } from 'knex';

/**
 * Creates the state of each rollout, by its name, and what nodes have measured of it. `run` is new whenever a rollout begins anew.
 * Nodes find the current stage by `shares` when an operator changes the stages. `followed_at` is when a node last watched the
 * rollout, because time that no node watched does not count as held.
 *
 * All nodes add up what they have seen of each run in `rollout_counts`. `counted` names what and, where it has one, the bucket of a
 * time or cost. `rollout_accounts` has the number of calls of each account since the guards looked last.
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
