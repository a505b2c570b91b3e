import { Counter, Gauge } from 'prom-client';
import { metrics } from '../../../core/metrics';
import type { Totals } from '../books/totals';

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
