import type { IncomingMessage } from 'node:http';
import type { CallFacts, RoutingExplanation } from '../../core/calls/call';
import type { Candidate, Model } from '../../core/catalog/catalog';
import type { ModelGauge } from '../../core/health/gauge';
import { type Choice, type Field, scoreOf, type Wish } from './choose';

/** As many of a call's candidates as it can come to ask are told in its record. */
const TOLD_AT_MOST = 4;

/** What the usage record says of the choice. */
export function tell({ routing }: CallFacts, { order }: Choice, field: Field, wish: Wish): void {
  routing.of = order.length;
  // Where there is no choice there is nothing to tell.
  if (order.length < 2) return;
  routing.candidates = order.slice(0, TOLD_AT_MOST).map((index) => ({
    upstream: (field.candidates[index] as Candidate).upstream.name,
    score: rounded(scoreOf(field, index, wish)),
  }));
}

/** The caller wants to know why; whether the key may is another question. */
export function asksForReasons({ headers }: IncomingMessage): boolean {
  return headers['x-tollgate-debug'] === 'routing';
}

export function explain(
  strategy: string,
  model: Model,
  { order }: Choice,
  field: Field,
  wish: Wish,
): RoutingExplanation {
  const leftOut = field.gauges.flatMap((gauge, index) =>
    order.includes(index) ? [] : [{ upstream: gauge.upstream.name, why: whyLeftOut(gauge) }],
  );
  const candidates = order.map((index) => describe(field, index, wish));
  const disabled = model.entries.flatMap(({ upstream: { name, disabled: why } }) =>
    why === undefined ? [] : [{ upstream: name, why: `disabled: ${why}` }],
  );
  return {
    strategy,
    affinity: wish.session !== undefined,
    model: model.name,
    candidates,
    leftOut: [...leftOut, ...disabled],
  };
}

function describe(field: Field, index: number, wish: Wish): RoutingExplanation['candidates'][number] {
  const candidate = field.candidates[index] as Candidate;
  const gauge = field.gauges[index] as ModelGauge;
  return {
    upstream: candidate.upstream.name,
    model: candidate.model.name,
    score: rounded(scoreOf(field, index, wish)),
    latencyMs: gauge.latencyMs === undefined ? undefined : Math.round(gauge.latencyMs),
    failureRate: rounded(gauge.failureRate),
    note: noteOf(gauge),
  };
}

function noteOf({ isResting, isUntried, isBeingTried, state }: ModelGauge): string | undefined {
  if (isResting) return 'asked for time (Retry-After)';
  if (state === 'due') return 'probed: its ejection is over';
  if (state !== 'in') return 'ejected, and asked because everybody is';
  if (isUntried) return 'untried';
  return isBeingTried ? 'being tried by another call' : undefined;
}

function whyLeftOut({ upstream, state }: ModelGauge): string {
  if (upstream.isTakenOut) return 'taken out by an operator';
  return state === 'probing' ? 'ejected, and being probed by another call' : 'ejected after failures';
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
