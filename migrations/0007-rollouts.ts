import type { Knex } from 'knex';

/**
 * Creates the state of each rollout, by its name, and what nodes have measured of it. `run` is new whenever a rollout begins anew.
 * Nodes find the current stage by `shares` when an operator changes the stages. `followed_at` is when a node last watched the
 * rollout, because time that no node watched does not count as held.
 *
 * All nodes add up the measurements of each run: calls and costs in `rollout_arms`, streams by the time to their first content in
 * `rollout_first_tokens`, unstreamed calls by the time to their answer in `rollout_whole_answers`. `rollout_slots` divides the control
 * group's callers into slots: how much the slots differ tells what chance can do.
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
  await knex.schema.createTable('rollout_arms', (table) => {
    table.comment('Calls and costs of each arm of a rollout, by run and stage.');
    addArm(table);
    for (const column of ['calls', 'errors', 'hurt', 'cost_e8', 'charged']) table.bigInteger(column).notNullable();
    for (const column of ['log_cost', 'log_cost_squares']) table.double(column).notNullable();
    table.primary(['run', 'stage', 'arm']);
  });
  await knex.schema.createTable('rollout_first_tokens', (table) => {
    table.comment('Streams of each arm by the time to their first content.');
    addArm(table);
    table.integer('bucket').notNullable();
    table.bigInteger('streams').notNullable();
    table.primary(['run', 'stage', 'arm', 'bucket']);
  });
  await knex.schema.createTable('rollout_whole_answers', (table) => {
    table.comment('Unstreamed calls of each arm by the time to their answer.');
    addArm(table);
    table.integer('bucket').notNullable();
    table.bigInteger('answers').notNullable();
    table.primary(['run', 'stage', 'arm', 'bucket']);
  });
  await knex.schema.createTable('rollout_slots', (table) => {
    table.comment('Measurements of the control group by slots of callers.');
    table.uuid('run').notNullable();
    table.integer('stage').notNullable();
    table.integer('slot').notNullable();
    for (const column of ['calls', 'errors', 'charged', 'streams', 'answers']) table.bigInteger(column).notNullable();
    for (const column of ['log_cost', 'log_first_token', 'log_whole']) table.double(column).notNullable();
    table.primary(['run', 'stage', 'slot']);
  });
}

function addArm(table: Knex.CreateTableBuilder): void {
  table.uuid('run').notNullable();
  table.integer('stage').notNullable();
  table.text('arm').notNullable();
}
