import type { Knex } from 'knex';
import { Counter, Gauge } from 'prom-client';
import { metrics } from '../../../core/metrics';
import { type DesiredState, LIFECYCLE_PHASES, type LifecyclePhase, type ObservedState, phaseOf } from '../life/states';

export const supplierCalls = new Counter({
  name: 'tollgate_sandbox_supplier_calls_total',
  help: 'Calls to sandbox suppliers that changed something or failed, by result.',
  labelNames: ['supplier', 'verb', 'outcome'],
  registers: [metrics],
});

export const supplierCallSeconds = new Counter({
  name: 'tollgate_sandbox_supplier_call_seconds_total',
  help: 'Time of calls to sandbox suppliers that changed something or failed.',
  labelNames: ['supplier', 'verb'],
  registers: [metrics],
});

export const orphansFound = new Gauge({
  name: 'tollgate_sandbox_orphans',
  help: 'Instances at suppliers that belonged to no sandbox at the last sweep.',
  labelNames: ['supplier'],
  aggregator: 'max',
  registers: [metrics],
});

export const silentPlaceSandboxes = new Gauge({
  name: 'tollgate_sandbox_silent_place_sandboxes',
  help: 'Sandboxes whose only node has been unreachable for longer than silentAfter.',
  aggregator: 'max',
  registers: [metrics],
});

export const sweepsStopped = new Counter({
  name: 'tollgate_sandbox_sweeps_stopped_total',
  help: 'Sweeps that found too many orphans at once and removed none; an operator must check.',
  labelNames: ['supplier'],
  registers: [metrics],
});

export const lossesStopped = new Counter({
  name: 'tollgate_sandbox_losses_stopped_total',
  help: 'Missing instances not marked as lost because too many of their supplier were missing at once; an operator must check.',
  labelNames: ['supplier'],
  registers: [metrics],
});

export const invariantsBroken = new Gauge({
  name: 'tollgate_sandbox_invariants_broken',
  help: 'Contradictions in the records of sandboxes; anything above 0 is an alarm.',
  labelNames: ['invariant'],
  aggregator: 'max',
  registers: [metrics],
});

const sandboxes = new Gauge({
  name: 'tollgate_sandboxes',
  help: 'Sandboxes that have not ended, by their state.',
  labelNames: ['state'],
  aggregator: 'max',
  registers: [metrics],
});

const held = new Gauge({
  name: 'tollgate_sandbox_held_usd',
  help: 'What the holds of these sandboxes hold together.',
  aggregator: 'max',
  registers: [metrics],
});

/** Sets the metrics to the totals of the database, which are the same in every worker process. */
export function showTotals({ byState, heldE8 }: Totals): void {
  for (const [state, count] of byState) sandboxes.set({ state }, count);
  held.set(Number(heldE8) / 1e8);
}

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
