import { Counter, Gauge } from 'prom-client';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';
import { metrics } from '../../core/metrics';
import type { Rollout } from '../../core/rollouts/rollout';
import type { RolloutRow } from './store';

/** Counts this process's calls in rollouts. The label `rollout` is a configured name. */
export const rolloutCalls = new Counter({
  name: 'tollgate_rollout_calls_total',
  help: 'Calls in a rollout, by group and by whether the upstream failed.',
  labelNames: ['rollout', 'group', 'outcome'] as const,
  registers: [metrics],
});

/** Exposes the progress of rollouts, which is read at each scrape. */
export function exposeRollouts(
  gateway: Pick<PluginGateway, 'configuration' | 'rollouts'>,
  engine: { rowOf(rollout: Rollout): Pick<RolloutRow, 'stage' | 'status'> | undefined },
): void {
  new Gauge({
    name: 'tollgate_rollout_share_ratio',
    help: 'Share of the callers in the treatment group of a rollout; 0 if it is rolled back or has not started.',
    labelNames: ['rollout'],
    aggregator: 'max',
    registers: [metrics],
    collect() {
      this.reset();
      for (const each of gateway.configuration.rollouts)
        this.set({ rollout: each.name }, gateway.rollouts.position(each)?.share ?? 0);
    },
  });
  new Gauge({
    name: 'tollgate_rollout_stage',
    help: 'The stage of a rollout, from 1.',
    labelNames: ['rollout'],
    aggregator: 'max',
    registers: [metrics],
    collect() {
      this.reset();
      for (const each of gateway.configuration.rollouts)
        this.set({ rollout: each.name }, engine.rowOf(each)?.stage ?? 0);
    },
  });
  new Gauge({
    name: 'tollgate_rollout_status',
    help: '1 for the current status of a rollout.',
    labelNames: ['rollout', 'status'],
    aggregator: 'max',
    registers: [metrics],
    collect() {
      this.reset();
      for (const each of gateway.configuration.rollouts)
        this.set({ rollout: each.name, status: engine.rowOf(each)?.status ?? 'not begun' }, 1);
    },
  });
  new Counter({
    name: 'tollgate_rollout_mirrors_dropped_total',
    help: 'Calls that were not mirrored to the treatment because too many mirrored calls were running.',
    registers: [metrics],
    collect() {
      this.reset();
      this.inc(gateway.rollouts.mirrorsDropped);
    },
  });
}
