import type { Knex } from 'knex';

/**
 * Queries that each count the rows that break an invariant. Amounts are compared with ledger entries only once these have had
 * time to reach Postgres.
 */
export const INVARIANTS = {
  final_with_open_segment: `
    SELECT count(*) FROM usage_segments AS segment JOIN sandboxes AS sandbox ON sandbox.id = segment.sandbox_id
    WHERE segment.ends_at IS NULL AND sandbox.observed_state IN ('FAILED', 'TERMINATED')`,
  final_with_open_period: `
    SELECT count(*) FROM billing_periods AS period JOIN sandboxes AS sandbox ON sandbox.id = period.sandbox_id
    WHERE period.status <> 'SETTLED' AND sandbox.observed_state IN ('FAILED', 'TERMINATED')`,
  active_without_period: `
    SELECT count(*) FROM sandboxes AS sandbox
    WHERE sandbox.admission = 'ACCEPTED' AND sandbox.observed_state NOT IN ('FAILED', 'TERMINATED')
      AND NOT EXISTS (SELECT FROM billing_periods WHERE sandbox_id = sandbox.id AND status <> 'SETTLED')`,
  total_is_not_the_sum_of_periods: `
    SELECT count(*) FROM sandboxes AS sandbox
    WHERE sandbox.total_cost_e8 <> (
      SELECT coalesce(sum(amount_e8), 0) FROM billing_periods WHERE sandbox_id = sandbox.id AND status = 'SETTLED')`,
  due_is_not_the_sum_of_lines: `
    SELECT count(*) FROM billing_periods AS period
    WHERE period.status = 'SETTLED' AND (period.amount_e8 + period.shortfall_e8 <> period.due_e8
      OR period.due_e8 <> (SELECT coalesce(sum(amount_e8), 0) FROM billing_lines WHERE period_id = period.id))`,
  amount_is_not_what_the_ledger_charged: `
    SELECT count(*) FROM billing_periods AS period
    LEFT JOIN ledger_entries AS entry
      ON entry.account_id = period.account_id AND entry.rid = period.hold_id AND entry.kind = 'charge'
    WHERE period.status = 'SETTLED' AND period.settled_at < :settledBefore
      AND period.settled_at > :settledAfter AND coalesce(-entry.amount_e8, 0) <> period.amount_e8`,
  settling_for_long: `
    SELECT count(*) FROM billing_periods WHERE status = 'SETTLING' AND ended_at < :settlingBefore`,
  overdue: `
    SELECT count(*) FROM sandboxes
    WHERE admission = 'ACCEPTED' AND observed_state NOT IN ('FAILED', 'TERMINATED') AND next_at < :dueBefore`,
} as const;

export type Invariant = keyof typeof INVARIANTS;

const MINUTE_MS = 60_000;

/** Returns how many rows break each invariant. */
export async function checkInvariants(database: Knex, nowMs: number): Promise<ReadonlyMap<Invariant, number>> {
  const times = {
    settledBefore: new Date(nowMs - 2 * MINUTE_MS),
    settledAfter: new Date(nowMs - 24 * 60 * MINUTE_MS),
    settlingBefore: new Date(nowMs - 5 * MINUTE_MS),
    dueBefore: new Date(nowMs - 5 * MINUTE_MS),
  };
  const found = new Map<Invariant, number>();
  for (const [name, query] of Object.entries(INVARIANTS)) {
    const bindings = Object.fromEntries(Object.entries(times).filter(([each]) => query.includes(`:${each}`)));
    const { rows } = await database.raw<{ rows: { count: bigint }[] }>(query, bindings);
    found.set(name as Invariant, Number(rows[0]?.count ?? 0));
  }
  return found;
}
