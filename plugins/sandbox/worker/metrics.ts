import type { Knex } from 'knex';
import { Counter, Gauge } from 'prom-client';
import { metrics } from '../../../core/base/metrics';
import { LIFECYCLE_PHASES, phaseOf } from '../lifecycle/states';

const counter = <const L extends string>(name: string, help: string, labelNames: readonly L[]) =>
  new Counter({ name, help, labelNames: [...labelNames], registers: [metrics] });
const gauge = <const L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
  new Gauge({ name, help, labelNames: [...labelNames], aggregator: 'max', registers: [metrics] });

export const supplierCalls = counter(
  'tollgate_sandbox_supplier_calls_total',
  'Calls to sandbox suppliers that changed something or failed, by result.',
  ['supplier', 'verb', 'outcome'],
);

export const supplierCallSeconds = counter(
  'tollgate_sandbox_supplier_call_seconds_total',
  'Time of calls to sandbox suppliers that changed something or failed.',
  ['supplier', 'verb'],
);

export const orphansFound = gauge(
  'tollgate_sandbox_orphans',
  'Instances at suppliers that belonged to no sandbox at the last sweep.',
  ['supplier'],
);

export const silentPlaceSandboxes = gauge(
  'tollgate_sandbox_silent_place_sandboxes',
  'Sandboxes whose only node has been unreachable for longer than silentAfter.',
);

export const sweepsStopped = counter(
  'tollgate_sandbox_sweeps_stopped_total',
  'Sweeps that found too many orphans at once and removed none; an operator must check.',
  ['supplier'],
);

export const lossesStopped = counter(
  'tollgate_sandbox_losses_stopped_total',
  'Missing instances not marked as lost because too many of their supplier were missing at once; an operator must check.',
  ['supplier'],
);

export const invariantsBroken = gauge(
  'tollgate_sandbox_invariants_broken',
  'Contradictions in the records of sandboxes; anything above 0 is an alarm.',
  ['invariant'],
);

const sandboxes = gauge('tollgate_sandboxes', 'Sandboxes that have not ended, by their state.', ['state']);

const heldUsd = gauge('tollgate_sandbox_held_usd', 'What the holds of these sandboxes hold together.');

const PHASES = LIFECYCLE_PHASES.filter((phase) => phase !== 'TERMINATED' && phase !== 'FAILED');

/**
 * Sets the metrics of the sandboxes that have not ended, and returns how many there are. Every worker process sets the same values. The
 * queries use partial indexes, so that ended sandboxes take no time.
 */
export async function showTotals(database: Knex): Promise<number> {
  const groups = await database.raw<{ rows: { states: Parameters<typeof phaseOf>[0]; count: number }[] }>(
    `SELECT jsonb_build_object('observedState', observed_state, 'desiredState', desired_state) AS states, count(*)::int AS count
     FROM sandboxes WHERE admission = 'ACCEPTED' AND observed_state NOT IN ('FAILED', 'TERMINATED')
     GROUP BY observed_state, desired_state`,
  );
  const held = await database.raw<{ rows: { amount: string }[] }>(
    `SELECT coalesce(sum(period.reserved_e8), 0)::text AS amount
     FROM billing_periods AS period JOIN sandboxes AS sandbox ON sandbox.id = period.sandbox_id
     WHERE period.status <> 'SETTLED' AND sandbox.admission = 'ACCEPTED'`,
  );
  for (const state of PHASES) {
    const inState = groups.rows.filter(({ states }) => phaseOf(states) === state);
    sandboxes.set(
      { state },
      inState.reduce((sum, { count }) => sum + count, 0),
    );
  }
  heldUsd.set(Number(held.rows[0]?.amount ?? 0) / 1e8);
  return groups.rows.reduce((sum, { count }) => sum + count, 0);
}
