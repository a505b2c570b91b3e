import type { IncomingMessage } from 'node:http';
import type { CallFacts, RoutingExplanation } from '../../core/calls/call';
import type { Candidate, Model } from '../../core/catalog/catalog';
import type { ModelGauge } from '../../core/health/gauge';
import { type CandidateSet, type RankingInput, type RoutingChoice, scoreOf } from './choose';

const MAX_LISTED = 4;

/** Writes the ranking of the candidates into the usage record. */
export function noteChoice(
  { routing }: CallFacts,
  { order }: RoutingChoice,
  set: CandidateSet,
  input: RankingInput,
): void {
  routing.of = order.length;
  // With a single candidate there was no choice to record.
  if (order.length < 2) return;
  routing.candidates = order.slice(0, MAX_LISTED).map((index) => ({
    upstream: (set.candidates[index] as Candidate).upstream.name,
    score: rounded(scoreOf(set, index, input)),
  }));
}

/** Returns whether the client requests the reasons of the routing. Whether its key may see them is decided elsewhere. */
export function asksForReasons({ headers }: IncomingMessage): boolean {
  return headers['x-tollgate-debug'] === 'routing';
}

export function explainRouting(
  strategy: string,
  model: Model,
  { order }: RoutingChoice,
  set: CandidateSet,
  input: RankingInput,
): RoutingExplanation {
  const leftOut = set.gauges.flatMap((gauge, index) =>
    order.includes(index) ? [] : [{ upstream: gauge.upstream.name, why: whyLeftOut(gauge) }],
  );
  const candidates = order.map((index) => describe(set, index, input));
  const disabled = model.entries.flatMap(({ upstream: { name, disabled: why } }) =>
    why === undefined ? [] : [{ upstream: name, why: `disabled: ${why}` }],
  );
  return {
    strategy,
    affinity: input.session !== undefined,
    model: model.name,
    candidates,
    leftOut: [...leftOut, ...disabled],
  };
}

function describe(set: CandidateSet, index: number, input: RankingInput): RoutingExplanation['candidates'][number] {
  const candidate = set.candidates[index] as Candidate;
  const gauge = set.gauges[index] as ModelGauge;
  return {
    upstream: candidate.upstream.name,
    model: candidate.model.name,
    score: rounded(scoreOf(set, index, input)),
    latencyMs: gauge.latencyMs === undefined ? undefined : Math.round(gauge.latencyMs),
    failureRate: rounded(gauge.failureRate),
    note: noteOf(gauge),
  };
}

function noteOf({ isResting, isUntried, isBeingTried, state }: ModelGauge): string | undefined {
  if (isResting) return 'rests as its Retry-After asks';
  if (state === 'due') return 'probed because its ejection is over';
  if (state !== 'in') return 'ejected, but tried because all candidates are ejected';
  if (isUntried) return 'untried';
  return isBeingTried ? 'another call is trying it' : undefined;
}

function whyLeftOut({ upstream, state }: ModelGauge): string {
  if (upstream.isDisabledByOperator) return 'disabled by an operator';
  return state === 'probing' ? 'ejected, and another call is probing it' : 'ejected after failures';
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
