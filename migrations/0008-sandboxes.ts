import type { Knex } from 'knex';

const LIFECYCLE = "('CREATE', 'SUSPEND', 'RESUME', 'TERMINATE')";
const NOT_ENDED = "observed_state NOT IN ('FAILED', 'TERMINATED')";
const OBSERVED = ['PROVISIONING', 'RUNNING', 'SUSPENDED', 'FAILED', 'TERMINATED', 'UNKNOWN'];

/**
 * Creates sandboxes with their history, bills and places; their commands with the stored output; and the hashes of the tokens that open a
 * port. The database does not store a command's text, input and variables. Amounts are E8 (1e-8 USD). Times have milliseconds, because the
 * gateway bills them. Unique indexes allow one sandbox per idempotency key of an account, and one open lifecycle operation, one open
 * segment and one open period per sandbox.
 */
export async function up(knex: Knex): Promise<void> {
  const time = (table: Knex.CreateTableBuilder, name: string) => table.timestamp(name, { useTz: true, precision: 3 });

  await knex.schema.createTable('quotes', (table) => {
    table.comment('Prices that were promised for a while.');
    table.uuid('id').primary();
    table.uuid('account_id').notNullable().references('accounts.id');
    table.uuid('offering_id').notNullable();
    table.text('offering_revision').notNullable();
    table.jsonb('offering').notNullable();
    time(table, 'created_at').notNullable();
    time(table, 'expires_at').notNullable();
    table.uuid('used_by');
    table.index(['expires_at']);
  });
  await knex.schema.createTable('sandboxes', (table) => {
    table.comment('Sandboxes: what was asked for, what is wanted, what was observed.');
    table.uuid('id').primary();
    table.uuid('account_id').notNullable().references('accounts.id');
    table.uuid('key_id').notNullable();
    table.text('idempotency_key').notNullable();
    table.specificType('request_hash', 'char(64)').notNullable();
    table.text('admission').notNullable().checkIn(['PENDING', 'ACCEPTED', 'CANCELLED']);
    table.uuid('quote_id');
    table.uuid('offering_id').notNullable();
    table.jsonb('offering').notNullable();
    table.text('supplier').notNullable();
    table.jsonb('spec').notNullable();
    table.integer('provisioning_limit_ms').notNullable();
    table.jsonb('policy').notNullable();
    table.jsonb('metadata').notNullable();
    // The tags that its creator gave, as `name=value` separated by spaces: the budgets of these tags pay its holds.
    table.text('tags');
    table.text('observed_state').notNullable().checkIn(OBSERVED);
    table.text('desired_state').checkIn(['RUNNING', 'SUSPENDED', 'TERMINATED']);
    table.text('last_confirmed_state').checkIn(OBSERVED.filter((state) => state !== 'UNKNOWN'));
    table.text('final_state').checkIn(['FAILED', 'TERMINATED']);
    table.jsonb('failure');
    table.integer('state_version').notNullable();
    table.integer('revision').notNullable().defaultTo(0);
    table.integer('event_sequence').notNullable().defaultTo(0);
    table.integer('segment_sequence').notNullable().defaultTo(0);
    table.jsonb('supplier_ref');
    time(table, 'create_sent_at');
    time(table, 'action_sent_at');
    time(table, 'confirmed_at');
    table.integer('silent_tries').notNullable().defaultTo(0);
    time(table, 'gone_since');
    time(table, 'stopped_at');
    table.integer('attempts').notNullable().defaultTo(0);
    time(table, 'last_used_at').notNullable();
    table.bigInteger('total_cost_e8').notNullable().defaultTo(0);
    time(table, 'reserved_until');
    time(table, 'created_at').notNullable();
    time(table, 'accepted_at');
    time(table, 'ended_at');
    time(table, 'terminated_at');
    time(table, 'next_at').notNullable();
    table.integer('lease_epoch').notNullable().defaultTo(0);
    time(table, 'lease_until');
    // The incarnation of the instance that the supplier last confirmed. A replaced or restarted instance has a different one.
    table.text('incarnation');
    table.text('place');
    table.unique(['account_id', 'idempotency_key']);
    table.index(['supplier']);
    table.index(['account_id', 'created_at', 'id']);
  });
  await knex.schema.raw(`CREATE INDEX sandboxes_due ON sandboxes (next_at) WHERE ${NOT_ENDED}`);
  await knex.schema.raw(`CREATE INDEX sandboxes_place ON sandboxes (place) WHERE ${NOT_ENDED}`);
  await knex.schema.createTable('sandbox_operations', (table) => {
    table.comment('Operations on sandboxes and how they ended.');
    table.uuid('id').primary();
    table.uuid('sandbox_id').notNullable().references('sandboxes.id').onDelete('CASCADE');
    table.text('type').notNullable();
    table.text('status').notNullable().checkIn(['PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED']);
    table.text('cause').notNullable();
    table.text('idempotency_key');
    time(table, 'requested_at').notNullable();
    time(table, 'started_at');
    time(table, 'ended_at');
    table.jsonb('error');
    table.jsonb('result');
    table.boolean('noop').notNullable().defaultTo(false);
    table.index(['sandbox_id', 'id']);
  });
  await knex.schema.raw(
    `CREATE UNIQUE INDEX sandbox_operations_open ON sandbox_operations (sandbox_id)
     WHERE type IN ${LIFECYCLE} AND status IN ('PENDING', 'RUNNING')`,
  );
  // A client may reuse the idempotency key of a creation once, for the operation that ends the sandbox.
  await knex.schema.raw(
    `CREATE UNIQUE INDEX sandbox_operations_key ON sandbox_operations (sandbox_id, type, idempotency_key)
     WHERE idempotency_key IS NOT NULL`,
  );
  await knex.schema.createTable('sandbox_events', (table) => {
    table.comment('What happened to each sandbox, in order.');
    table.uuid('id').primary();
    table.uuid('sandbox_id').notNullable().references('sandboxes.id').onDelete('CASCADE');
    table.integer('sequence').notNullable();
    table.text('type').notNullable();
    table.text('status').notNullable();
    table.text('previous_state');
    table.text('current_state').notNullable();
    table.text('lifecycle_phase').notNullable();
    table.integer('state_version').notNullable();
    table.uuid('operation_id');
    table.text('source').notNullable();
    table.text('message');
    time(table, 'created_at').notNullable();
    table.unique(['sandbox_id', 'sequence']);
  });
  await knex.schema.createTable('usage_segments', (table) => {
    table.comment('Times a sandbox spent in one state at one price.');
    table.uuid('id').primary();
    table.uuid('sandbox_id').notNullable().references('sandboxes.id').onDelete('CASCADE');
    table.integer('sequence').notNullable();
    table.text('state').notNullable();
    table.bigInteger('hourly_e8').notNullable();
    time(table, 'starts_at').notNullable();
    time(table, 'ends_at');
    table.unique(['sandbox_id', 'sequence']);
  });
  await knex.schema.raw('CREATE UNIQUE INDEX usage_segments_open ON usage_segments (sandbox_id) WHERE ends_at IS NULL');
  await knex.schema.createTable('billing_periods', (table) => {
    table.comment("Times that one hold of the ledger pays for, with the hold''s settlement.");
    table.uuid('id').primary();
    table.uuid('sandbox_id').notNullable().references('sandboxes.id').onDelete('CASCADE');
    table.uuid('account_id').notNullable();
    table.uuid('key_id').notNullable();
    table.integer('sequence').notNullable();
    table.uuid('hold_id').notNullable().unique();
    table.text('status').notNullable().checkIn(['OPEN', 'SETTLING', 'SETTLED']);
    table.bigInteger('reserved_e8').notNullable();
    table.bigInteger('due_e8');
    table.bigInteger('amount_e8');
    table.bigInteger('shortfall_e8').notNullable().defaultTo(0);
    time(table, 'started_at').notNullable();
    time(table, 'covers_until').notNullable();
    time(table, 'ended_at');
    time(table, 'settled_at');
    table.unique(['sandbox_id', 'sequence']);
    table.index(['account_id']);
  });
  await knex.schema.raw(
    `CREATE UNIQUE INDEX billing_periods_open ON billing_periods (sandbox_id) WHERE status = 'OPEN'`,
  );
  await knex.schema.raw(`CREATE INDEX billing_periods_held ON billing_periods (account_id) WHERE status <> 'SETTLED'`);
  await knex.schema.createTable('billing_lines', (table) => {
    table.comment('What each segment costs within each billing period.');
    table.uuid('period_id').notNullable().references('billing_periods.id').onDelete('CASCADE');
    table.uuid('segment_id').notNullable().references('usage_segments.id').onDelete('CASCADE');
    time(table, 'starts_at').notNullable();
    time(table, 'ends_at').notNullable();
    table.bigInteger('amount_e8').notNullable();
    table.primary(['period_id', 'segment_id']);
    table.index(['segment_id']);
  });
  await knex.schema.createTable('supplier_cleanup', (table) => {
    table.comment('Instances that still have to be removed at their supplier.');
    table.uuid('id').primary();
    table.text('supplier').notNullable();
    table.jsonb('ref').notNullable();
    table.text('name').notNullable();
    table.uuid('sandbox_id');
    table.text('reason').notNullable();
    time(table, 'created_at').notNullable();
    time(table, 'next_at').notNullable();
    table.integer('attempts').notNullable().defaultTo(0);
    time(table, 'done_at');
    table.text('place');
  });
  await knex.schema.raw(
    'CREATE UNIQUE INDEX supplier_cleanup_open ON supplier_cleanup (supplier, name) WHERE done_at IS NULL',
  );
  // A place is a driver's name for where its instances live, such as the id of a data folder. Every node reaches an instance that has no place.
  await knex.schema.createTable('sandbox_places', (table) => {
    table.comment('Places of instances that only some nodes reach, and when a node last reached each.');
    table.text('id').primary();
    table.text('supplier').notNullable();
    table.text('host').notNullable();
    time(table, 'seen_at').notNullable();
    time(table, 'lost_at');
  });
  await knex.schema.createTable('sandbox_installation', (table) => {
    table.comment("Tells this database''s instances from those of others at a supplier. It has one row.");
    table.uuid('id').primary();
  });
  await knex.raw('INSERT INTO sandbox_installation (id) VALUES (gen_random_uuid())');
  await knex.schema.createTable('sandbox_commands', (table) => {
    table.comment('Commands in sandboxes and how they ended, without their text.');
    table.uuid('id').primary();
    table.uuid('sandbox_id').notNullable().references('sandboxes.id').onDelete('CASCADE');
    table.uuid('operation_id').notNullable();
    table.boolean('background').notNullable();
    table.text('status').notNullable().checkIn(['RUNNING', 'EXITED', 'TIMED_OUT', 'LOST']);
    table.integer('exit_code');
    table.boolean('stdout_truncated').notNullable().defaultTo(false);
    table.boolean('stderr_truncated').notNullable().defaultTo(false);
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
    table.comment('What is kept of the output of commands.');
    table.uuid('command_id').notNullable().references('sandbox_commands.id').onDelete('CASCADE');
    table.integer('sequence').notNullable();
    table.text('stream').notNullable().checkIn(['stdout', 'stderr']);
    table.binary('bytes').notNullable();
    table.primary(['command_id', 'sequence']);
  });
  await knex.schema.createTable('sandbox_ports', (table) => {
    table.comment('Tokens that open a port of a sandbox, by SHA-256.');
    table.uuid('sandbox_id').notNullable().references('sandboxes.id').onDelete('CASCADE');
    table.integer('port').notNullable();
    table.specificType('token_hash', 'char(64)').notNullable();
    time(table, 'created_at').notNullable();
    time(table, 'expires_at').notNullable();
    table.uuid('key_id').notNullable().references('api_keys.id');
    table.primary(['sandbox_id', 'port', 'token_hash']);
  });
}
