import type { Model, Upstream } from '../catalog/catalog';
import type { UpstreamGauge } from './gauge';
import type { UpstreamHealth } from './health';

/** The states of an upstream. If several apply, the first of them in this list is shown. */
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

/** Rounds a measurement for a response body; null while there is none. */
export function rounded(value: number | undefined, digits = 0): number | null {
  return value === undefined ? null : Number(value.toFixed(digits));
}

/** Returns the entries whose upstream is disabled neither in the configuration nor by an operator. */
export function routableEntries({ entries }: Model, health: UpstreamHealth): Model['entries'] {
  return entries.filter(
    ({ upstream: { name, disabled } }) => disabled === undefined && !health.upstream(name).isDisabledByOperator,
  );
}
