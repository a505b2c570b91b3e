import type { Knex } from 'knex';

/** Says in the database what each table is for. `docs/schema.sql` shows it. */
const COMMENTS: Readonly<Record<string, string>> = {
  accounts: 'Who pays.',
  api_keys: 'API keys of accounts, by SHA-256, with their limits.',
  credits: 'Credits and debits of operators, each once per idempotency key.',
  ledger_entries: 'Every entry of the ledger, in a chain per account. Entries never change.',
  ledger_accounts: "Where each account's chain of entries ends.",
  key_spending: 'What each key has spent on each day of UTC.',
  ledger_checkpoints: "Where an account's chain continues after its older entries were dropped.",
  usage_records: 'One row per call: what it asked for, how it ended, what it cost.',
  usage_sums: 'Sums of usage records by hour, for the account and each of its keys, models and upstreams.',
  usage_summed: 'Until when usage records are in usage_sums. It has one row.',
  config_revisions: 'Configurations as they were applied. The newest is in force.',
  config_nodes: 'What each node reports of its configuration.',
  audit_log: 'What was changed, by whom, with the values before and after.',
  users: 'Users of the console, with the identity that each is bound to.',
  user_sessions: 'Open sessions of the console, by SHA-256 of their token.',
  sign_in_links: 'Links that sign a user in once, by SHA-256.',
  sign_in_attempts: 'Attempts to sign in, counted by SHA-256 of an e-mail or network address.',
  taken_out_upstreams: 'Upstreams that operators disabled.',
  rollouts: 'How far each rollout has come.',
  rollout_arms: 'Calls and costs of each arm of a rollout, by run and stage.',
  rollout_first_tokens: 'Streams of each arm by the time to their first content.',
  rollout_whole_answers: 'Unstreamed calls of each arm by the time to their answer.',
  rollout_slots: 'Measurements of the control group by slots of callers.',
  offerings_seen: 'Offerings as they were when a sandbox or quote first used them.',
  quotes: 'Prices that were promised for a while.',
  sandbox_create_rates: 'How many sandboxes each account has created lately.',
  sandboxes: 'Sandboxes: what was asked for, what is wanted, what was observed.',
  sandbox_operations: 'Operations on sandboxes and how they ended.',
  sandbox_supplier_calls: 'Every call to a supplier and how it ended.',
  sandbox_events: 'What happened to each sandbox, in order.',
  usage_segments: 'Times a sandbox spent in one state at one price.',
  billing_periods: "Times that one hold of the ledger pays for, with the hold's settlement.",
  billing_lines: 'What each segment costs within each billing period.',
  supplier_cleanup: 'Instances that still have to be removed at their supplier.',
  sandbox_places: 'Places of instances that only some nodes reach, and when a node last reached each.',
  sandbox_installation: "Tells this database's instances from those of others at a supplier. It has one row.",
  sandbox_commands: 'Commands in sandboxes and how they ended, without their text.',
  sandbox_command_output: 'What is kept of the output of commands.',
  sandbox_ports: 'Tokens that open a port of a sandbox, by SHA-256.',
};

export async function up(knex: Knex): Promise<void> {
  for (const [table, comment] of Object.entries(COMMENTS))
    await knex.raw(`COMMENT ON TABLE ${table} IS '${comment.replaceAll("'", "''")}'`);
}
