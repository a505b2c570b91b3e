import { drawFor, textHash } from '../../core/catalog/affinity';
import { type Candidate, isLast } from '../../core/catalog/catalog';
import type { AnswerKind, ModelGauge } from '../../core/health/gauge';
import type { UpstreamHealth } from '../../core/health/health';
import { lacksOf } from '../../core/protocols/needs';
import type { RankingQuery, Strategy } from './strategies';

/** The candidates of a model in a pipeline, each with its gauge (the measurements of the model there). It is built once per configuration. */
export interface CandidateSet {
  readonly candidates: readonly Candidate[];
  readonly gauges: readonly ModelGauge[];
  readonly hashes: readonly number[];
  /** For each candidate: whether it ranks behind the others, because its calls are translated. */
  readonly last: readonly boolean[];
  /** For each candidate, what it lacks by its facts, as bits of core/protocols/needs.ts; and what any of them lacks. */
  readonly lacks: readonly number[];
  readonly lacking: number;
  /** The different sizes of the candidates' context windows, in ascending order. */
  readonly contexts: readonly number[];
  /** The names of upstreams that are tried before all others, unless they may not be tried or must rest after a Retry-After. */
  readonly first?: ReadonlySet<string> | undefined;
}

export function openCandidateSet(
  candidates: readonly Candidate[],
  health: UpstreamHealth,
  first?: readonly string[],
): CandidateSet {
  return {
    candidates,
    gauges: candidates.map((each) => health.gauge(each)),
    hashes: candidates.map(({ upstream }) => textHash(upstream.name)),
    ...derivedFrom(candidates),
    first: first && new Set(first),
  };
}

function derivedFrom(candidates: readonly Candidate[]): Pick<CandidateSet, 'last' | 'lacks' | 'lacking' | 'contexts'> {
  const lacks = candidates.map(({ model }) => lacksOf(model));
  return {
    last: candidates.every(isLast) ? candidates.map(() => false) : candidates.map(isLast),
    lacks,
    lacking: lacks.reduce((all, each) => all | each, 0),
    contexts: [...new Set(candidates.map(({ model }) => model.context))].sort((one, other) => one - other),
  };
}

/** Returns the candidates of a set for whose index `isIn` is true; the set itself if that is so for all. */
export function subsetOf(set: CandidateSet, isIn: (index: number) => boolean): CandidateSet {
  const indexes = [...set.candidates.keys()].filter(isIn);
  if (indexes.length === set.candidates.length) return set;
  const pick = <T>(all: readonly T[]) => indexes.map((at) => all[at] as T);
  const candidates = pick(set.candidates);
  const { gauges, hashes, first } = set;
  return { candidates, gauges: pick(gauges), hashes: pick(hashes), ...derivedFrom(candidates), first };
}

export interface RoutingChoice {
  /** Indices into the set of candidates, best candidate first. Candidates that may not be tried are absent. */
  readonly order: readonly number[];
  /** The gauge (measurements) of the first candidate if this call is the first to try that candidate; otherwise undefined. */
  readonly asks: ModelGauge | undefined;
}

export interface RankingInput {
  readonly strategy: Strategy;
  readonly asked: RankingQuery;
  readonly kind: AnswerKind;
  readonly nowMs: number;
  /** The hash of the session, which decides between candidates of equal rank. Without a session (undefined), a random number decides. */
  readonly session: number | undefined;
  /** Returns a random number from 0 to 1; the default is `Math.random`. */
  readonly random?: () => number;
}

/** The score added to an upstream that rests because of its Retry-After. It ranks behind all that do not rest. */
const RESTING = 1e12;
const PREFERRED = -1e12;
/** The score added to a candidate whose calls are translated. It ranks behind all that speak the client's protocol. */
const TRANSLATED = 1e13;

/** The score of a candidate that may not be tried. */
const LEFT_OUT = Number.POSITIVE_INFINITY;

/**
 * Ranks the candidates that may be tried by score. Candidates whose scores differ by no more than chance share the calls by weight. If
 * every candidate is ejected, the gateway tries all of them anyway, by score and failure rate. If the probe (the one call that tests an
 * ejected candidate) fails there, that call can still use another candidate. A candidate that an operator has disabled is never tried.
 */
export function choose(set: CandidateSet, input: RankingInput): RoutingChoice {
  const { gauges } = set;
  let anyIsIn = false;
  for (const gauge of gauges) {
    gauge.look(input.kind, input.nowMs);
    if (gauge.state === 'in' && !gauge.upstream.isDisabledByOperator) anyIsIn = true;
  }
  const order = inOrder(set, input, anyIsIn);
  const first = order[0] === undefined ? undefined : gauges[order[0]];
  return { order, asks: first?.isUntried === true ? first : undefined };
}

export function scoreOf(
  { candidates, gauges }: CandidateSet,
  index: number,
  { strategy, asked }: RankingInput,
): number {
  return strategy.score(candidates[index] as Candidate, gauges[index] as ModelGauge, asked);
}

interface Ranked {
  readonly index: number;
  readonly place: number;
  readonly noise: number;
}

/** Returns the candidates that may be tried, ordered by adjusted score. Candidates with equal scores are in a random order that their weights influence. */
function inOrder(set: CandidateSet, input: RankingInput, anyIsIn: boolean): number[] {
  const [only] = set.gauges;
  if (set.gauges.length === 1 && only !== undefined)
    return placeOf(set, 0, only, input, anyIsIn) === LEFT_OUT ? [] : [0];
  const ranked: Ranked[] = [];
  for (const [index, gauge] of set.gauges.entries()) {
    const place = placeOf(set, index, gauge, input, anyIsIn);
    if (place !== LEFT_OUT) ranked.push({ index, place, noise: input.strategy.noise(gauge) });
  }
  ranked.sort((one, other) => one.place - other.place);
  const order: number[] = [];
  for (let from = 0, end = 1; from < ranked.length; from = end, end += 1) {
    const best = ranked[from] as Ranked;
    while (end < ranked.length && areEqual(best, ranked[end] as Ranked)) end += 1;
    if (end - from === 1) order.push(best.index);
    else order.push(...byLot(ranked.slice(from, end), set, input));
  }
  return order;
}

/**
 * Returns whether two scores differ by no more than chance. Independent errors add up as the root of the sum of their squares. A candidate
 * without measurements has no chance error, so only an identical score is equal to its score.
 */
function areEqual(best: Ranked, other: Ranked): boolean {
  const allowed = best.noise === 0 || other.noise === 0 ? 0 : Math.hypot(best.noise, other.noise);
  return other.place - best.place <= allowed;
}

function byLot(equals: readonly Ranked[], set: CandidateSet, input: RankingInput): number[] {
  const lots = equals.map(({ index }) => ({ index, lot: draw(set, index, input) }));
  return lots.sort((one, other) => other.lot - one.lot).map(({ index }) => index);
}

/** Returns a candidate's number for the order among equals, drawn from the session's hash or at random, by weight. If two equal candidates have the weights 3 and 1, the first ranks first three times out of four. */
function draw(
  { candidates, hashes }: CandidateSet,
  index: number,
  { session, random = Math.random }: RankingInput,
): number {
  const drawn = session === undefined ? random() : drawFor(session, hashes[index] as number);
  return drawn ** (1 / (candidates[index] as Candidate).upstream.weight);
}

/** Returns the strategy's score after adjustments that outweigh it: for a rest after a Retry-After, a translated call, and a preferred upstream. */
function placeOf(set: CandidateSet, index: number, gauge: ModelGauge, input: RankingInput, anyIsIn: boolean): number {
  if (gauge.upstream.isDisabledByOperator) return LEFT_OUT;
  const score = scoreOf(set, index, input) + (set.last[index] === true ? TRANSLATED : 0);
  if (!anyIsIn) return score + gauge.failureRate * RESTING;
  if (!gauge.mayBeAsked) return LEFT_OUT;
  if (gauge.isResting) return score + RESTING;
  return set.first?.has(gauge.upstream.name) === true ? score + PREFERRED : score;
}
