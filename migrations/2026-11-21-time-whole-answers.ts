import type { Knex } from 'knex';

/** What was seen of unstreamed calls of each group by the time to their answer, as `rollout_first_tokens` has it of streams. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('rollout_whole_answers', (table) => {
    table.uuid('run').notNullable();
    table.integer('stage').notNullable();
    table.text('arm').notNullable();
    table.integer('bucket').notNullable();
    table.bigInteger('answers').notNullable();
    table.primary(['run', 'stage', 'arm', 'bucket']);
  });
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.dropTable('rollout_whole_answers');
}
