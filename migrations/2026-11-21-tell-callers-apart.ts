import type { Knex } from 'knex';

/** What was seen of the control group by slots of callers: how much they differ tells what chance can do. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('rollout_slots', (table) => {
    table.uuid('run').notNullable();
    table.integer('stage').notNullable();
    table.integer('slot').notNullable();
    for (const column of ['calls', 'errors', 'charged', 'streams', 'answers']) table.bigInteger(column).notNullable();
    for (const column of ['log_cost', 'log_first_token', 'log_whole']) table.double(column).notNullable();
    table.primary(['run', 'stage', 'slot']);
  });
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.dropTable('rollout_slots');
}
