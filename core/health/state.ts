import type { Model, Upstream } from '../catalog/catalog';
import type { UpstreamGauge } from './gauge';
import type { UpstreamHealth } from './health';

/** The states of an upstream. If several apply, the first in this list is shown. */
export const UPSTREAM_STATES = ['disabled', 'taken-out', 'ejected', 'probing', 'resting', 'available'] as const;

type UpstreamState = (typeof UPSTREAM_STATES)[number];

export function upstreamState(upstream: Upstream, gauge: UpstreamGauge, nowMs: number): UpstreamState {
  if (upstream.disabled !== undefined) return 'disabled';
  if (gauge.isDisabledByOperator) return 'taken-out';
  const state = gauge.ejection.state(nowMs);
  if (state === 'probing') return 'probing';
  if (state !== 'in') return 'ejected';
  return gauge.restsUntilMs > nowMs ? 'resting' : 'available';
}

/** Rounds a measurement for a response body; returns null if the measurement is undefined. */
export function rounded(value: number | undefined, digits = 0): number | null {
  return value === undefined ? null : Number(value.toFixed(digits));
}

/** Returns a model's entries at upstreams that neither the configuration nor an operator has disabled. */
export function routableEntries({ entries }: Model, health: UpstreamHealth): Model['entries'] {
  return entries.filter(
    ({ upstream: { name, disabled } }) => disabled === undefined && !health.upstream(name).isDisabledByOperator,
  );
}
