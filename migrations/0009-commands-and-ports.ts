import type { Knex } from 'knex';

/**
 * Creates the commands of sandboxes with what is kept of their output, and the hashes of the tokens that open a port. The database
 * keeps neither a command's text nor its input or variables. A token is valid as long as the API key that made it.
 */
export async function up(knex: Knex): Promise<void> {
  const time = (table: Knex.CreateTableBuilder, name: string) => table.timestamp(name, { useTz: true, precision: 3 });

  await knex.schema.createTable('sandbox_commands', (table) => {
    table.uuid('id').primary();
    table.uuid('sandbox_id').notNullable().references('sandboxes.id').onDelete('CASCADE');
    table.uuid('operation_id').notNullable();
    table.boolean('background').notNullable();
    table.text('status').notNullable().checkIn(['RUNNING', 'EXITED', 'TIMED_OUT', 'LOST']);
    table.integer('exit_code');
    table.boolean('stdout_truncated').notNullable().defaultTo(false);
    table.boolean('stderr_truncated').notNullable().defaultTo(false);
    table.integer('last_sequence').notNullable().defaultTo(0);
    time(table, 'started_at').notNullable();
    time(table, 'ended_at');
    time(table, 'kill_at');
    time(table, 'watched_until').notNullable();
    table.index(['sandbox_id', 'id']);
  });
  await knex.schema.raw(
    `CREATE INDEX sandbox_commands_running ON sandbox_commands (watched_until) WHERE status = 'RUNNING'`,
  );
  await knex.schema.createTable('sandbox_command_output', (table) => {
    table.uuid('command_id').notNullable().references('sandbox_commands.id').onDelete('CASCADE');
    table.integer('sequence').notNullable();
    table.text('stream').notNullable().checkIn(['stdout', 'stderr']);
    table.binary('bytes').notNullable();
    table.primary(['command_id', 'sequence']);
  });
  await knex.schema.createTable('sandbox_ports', (table) => {
    table.uuid('sandbox_id').notNullable().references('sandboxes.id').onDelete('CASCADE');
    table.integer('port').notNullable();
    table.specificType('token_hash', 'char(64)').notNullable();
    time(table, 'created_at').notNullable();
    time(table, 'expires_at').notNullable();
    table.uuid('key_id').notNullable().references('api_keys.id');
    table.primary(['sandbox_id', 'port', 'token_hash']);
  });
}
