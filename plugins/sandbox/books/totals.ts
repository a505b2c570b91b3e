import type { Knex } from 'knex';
import { type DesiredState, LIFECYCLE_PHASES, type LifecyclePhase, type ObservedState, phaseOf } from '../life/states';

/** Totals of the sandboxes that have not ended. */
export interface Totals {
  /** The number of sandboxes in each state. A state without sandboxes has 0. */
  readonly byState: ReadonlyMap<LifecyclePhase, number>;
  readonly heldE8: bigint;
}

interface Group {
  readonly observedState: ObservedState;
  readonly desiredState: DesiredState;
  readonly count: number;
}

/** Reads the totals through partial indexes. It takes time for unfinished sandboxes only, however many have ended. */
export async function readTotals(database: Knex): Promise<Totals> {
  const groups = await database.raw<{ rows: Group[] }>(
    `SELECT observed_state AS "observedState", desired_state AS "desiredState", count(*)::int AS count
     FROM sandboxes WHERE admission = 'ACCEPTED' AND observed_state NOT IN ('FAILED', 'TERMINATED')
     GROUP BY observed_state, desired_state`,
  );
  const held = await database.raw<{ rows: { amount: string }[] }>(
    `SELECT coalesce(sum(period.reserved_e8), 0)::text AS amount
     FROM billing_periods AS period JOIN sandboxes AS sandbox ON sandbox.id = period.sandbox_id
     WHERE period.status <> 'SETTLED' AND sandbox.admission = 'ACCEPTED'`,
  );
  const byState = new Map<LifecyclePhase, number>(PHASES.map((phase) => [phase, 0]));
  for (const { count, ...states } of groups.rows) {
    const phase = phaseOf(states);
    byState.set(phase, (byState.get(phase) ?? 0) + count);
  }
  return { byState, heldE8: BigInt(held.rows[0]?.amount ?? 0) };
}

const PHASES = LIFECYCLE_PHASES.filter((phase) => phase !== 'TERMINATED' && phase !== 'FAILED');
