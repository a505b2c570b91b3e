import type { Knex } from 'knex';

const AT_ONCE = 500;

/**
 * Deletes sandboxes that ended before this time, with their operations, events, segments, periods and commands, and cleanups that
 * finished before it. Ledger entries keep what was charged. Returns how many sandboxes it deleted.
 */
export async function forgetEnded(database: Knex, beforeMs: number): Promise<number> {
  const before = new Date(beforeMs);
  const ended = database('sandboxes')
    .whereIn('observed_state', ['FAILED', 'TERMINATED'])
    .where('ended_at', '<', before)
    .orderBy('ended_at')
    .limit(AT_ONCE)
    .select('id');
  let forgotten = 0;
  for (;;) {
    const deleted = await database('sandboxes').whereIn('id', ended.clone()).delete();
    forgotten += deleted;
    if (deleted < AT_ONCE) break;
  }
  await database('supplier_cleanup').where('done_at', '<', before).delete();
  return forgotten;
}
