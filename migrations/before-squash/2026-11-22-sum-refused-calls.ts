import type { Knex } from 'knex';

const INDEXES = ['usage_records_by_account', 'usage_records_by_key', 'usage_records_by_upstream'];
const FUNCTIONS = ['sum_usage_after_insert', 'sum_usage_after_update', 'sum_usage_after_delete', 'sum_usage_until'];

/**
 * A usage record may stand for several calls that were refused in the same second: `calls` counts them. Sums add it up instead of
 * counting records, and the indexes that sums are read from hold it.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE usage_records ADD COLUMN calls int NOT NULL DEFAULT 1');
  await changeFunctions(knex, 'sum(sign)', 'sum(sign * calls)');
  await changeIndexes(knex, 'INCLUDE (', 'INCLUDE (calls, ');
}

async function changeFunctions(knex: Knex, from: string, to: string): Promise<void> {
  for (const name of FUNCTIONS) {
    const { rows } = await knex.raw<{ rows: { text: string }[] }>(
      'SELECT pg_get_functiondef(oid) AS text FROM pg_proc WHERE proname = ?',
      [name],
    );
    for (const { text } of rows) await runAsItIs(knex, text.replaceAll(from, to));
  }
}

async function changeIndexes(knex: Knex, from: string, to: string): Promise<void> {
  for (const name of INDEXES) {
    const { rows } = await knex.raw<{ rows: { text: string }[] }>(
      'SELECT pg_get_indexdef(oid) AS text FROM pg_class WHERE relname = ?',
      [name],
    );
    await knex.raw(`DROP INDEX ${name}`);
    for (const { text } of rows) await runAsItIs(knex, text.replace(' ON ONLY ', ' ON ').replace(from, to));
  }
}

/** A question mark in the text is no place for a parameter. */
async function runAsItIs(knex: Knex, text: string): Promise<void> {
  await knex.raw(text.replaceAll('?', '\\?'));
}
