import type { IncomingMessage } from 'node:http';
import type { CallFacts, RoutingExplanation } from '../../core/call';
import type { Model } from '../../core/catalog';
import type { ModelGauge } from '../../core/upstream-gauge';
import type { Choice, Field, Ranked } from './choose';

/** As many of a call's candidates as it can come to ask are told in its record. */
const TOLD_AT_MOST = 4;

/** What the usage record says of the choice. */
export function tell({ routing }: CallFacts, { ranked }: Choice): void {
  routing.of = ranked.length;
  routing.candidates = ranked
    .slice(0, TOLD_AT_MOST)
    .map(({ candidate, score }) => ({ upstream: candidate.upstream.name, score: rounded(score) }));
}

/** The caller wants to know why; whether the key may is another question. */
export function asksForReasons({ headers }: IncomingMessage): boolean {
  return headers['x-tollgate-debug'] === 'routing';
}

export function explain(strategy: string, model: Model, field: Field, { ranked }: Choice): RoutingExplanation {
  const asked = new Set(ranked.map(({ candidate }) => candidate));
  const leftOut = field.candidates.flatMap((candidate, index) => {
    const gauge = field.gauges[index];
    if (asked.has(candidate) || gauge === undefined) return [];
    return [{ upstream: candidate.upstream.name, why: whyLeftOut(gauge) }];
  });
  const disabled = model.entries.flatMap(({ upstream: { name, disabled: why } }) =>
    why === undefined ? [] : [{ upstream: name, why: `disabled: ${why}` }],
  );
  return { strategy, model: model.name, candidates: ranked.map(describe), leftOut: [...leftOut, ...disabled] };
}

function describe({ candidate, gauge, score }: Ranked): RoutingExplanation['candidates'][number] {
  return {
    upstream: candidate.upstream.name,
    model: candidate.model.name,
    score: rounded(score),
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
