import type { Knex } from 'knex';

/**
 * How far each rollout has come, by its name. `run` is new whenever it begins anew; what was seen of each run's groups is added up
 * by all nodes: calls and costs in `rollout_arms`, streams by the time to their first content in `rollout_first_tokens`.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('rollouts', (table) => {
    table.text('name').primary();
    table.text('definition').notNullable();
    table.uuid('run').notNullable();
    table.text('status').notNullable();
    table.integer('stage').notNullable();
    table.timestamp('stage_since', { useTz: true }).notNullable();
    table.timestamp('changed_at', { useTz: true }).notNullable();
    table.text('reason');
    table.jsonb('looks').notNullable();
  });
  await knex.schema.createTable('rollout_arms', (table) => {
    ofGroup(table);
    for (const column of ['calls', 'errors', 'hurt', 'cost_e8', 'charged']) table.bigInteger(column).notNullable();
    for (const column of ['log_cost', 'log_cost_squares']) table.double(column).notNullable();
    table.primary(['run', 'stage', 'arm']);
  });
  await knex.schema.createTable('rollout_first_tokens', (table) => {
    ofGroup(table);
    table.integer('bucket').notNullable();
    table.bigInteger('streams').notNullable();
    table.primary(['run', 'stage', 'arm', 'bucket']);
  });
}

function ofGroup(table: Knex.CreateTableBuilder): void {
  table.uuid('run').notNullable();
  table.integer('stage').notNullable();
  table.text('arm').notNullable();
}

export async function down(knex: Knex): Promise<void> {
  for (const table of ['rollout_first_tokens', 'rollout_arms', 'rollouts']) await knex.schema.dropTable(table);
}
