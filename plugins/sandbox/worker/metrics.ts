import { Counter, Gauge } from 'prom-client';
import { metrics } from '../../../core/metrics';
import type { Totals } from '../books/totals';

export const supplierCalls = new Counter({
  name: 'tollgate_sandbox_supplier_calls_total',
  help: 'Calls of sandbox suppliers that change something or failed, by how they ended.',
  labelNames: ['supplier', 'verb', 'outcome'],
  registers: [metrics],
});

export const supplierCallSeconds = new Counter({
  name: 'tollgate_sandbox_supplier_call_seconds_total',
  help: 'Time spent in these calls.',
  labelNames: ['supplier', 'verb'],
  registers: [metrics],
});

export const orphansFound = new Gauge({
  name: 'tollgate_sandbox_orphans',
  help: 'Instances that no sandbox accounts for, at the last sweep.',
  labelNames: ['supplier'],
  aggregator: 'max',
  registers: [metrics],
});

export const silentPlaceSandboxes = new Gauge({
  name: 'tollgate_sandbox_silent_place_sandboxes',
  help: 'Sandboxes that only a node reaches which has been away for longer than silentAfter.',
  aggregator: 'max',
  registers: [metrics],
});

export const sweepsStopped = new Counter({
  name: 'tollgate_sandbox_sweeps_stopped_total',
  help: 'Sweeps that found too many orphans at once and removed none: somebody must look.',
  labelNames: ['supplier'],
  registers: [metrics],
});

export const lossesStopped = new Counter({
  name: 'tollgate_sandbox_losses_stopped_total',
  help: 'Instances not taken for lost because too many of their supplier were gone at once: somebody must look.',
  labelNames: ['supplier'],
  registers: [metrics],
});

export const invariantsBroken = new Gauge({
  name: 'tollgate_sandbox_invariants_broken',
  help: 'How often the books of the sandboxes contradict themselves; anything above 0 is an alarm.',
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

/** Shows the totals of the database: all processes that work show the same. */
export function showTotals({ byState, heldE8 }: Totals): void {
  for (const [state, count] of byState) sandboxes.set({ state }, count);
  held.set(Number(heldE8) / 1e8);
}
