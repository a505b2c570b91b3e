import { drawFor, textHash } from '../../core/catalog/affinity';
import { type Candidate, isLast } from '../../core/catalog/catalog';
import type { AnswerKind, ModelGauge } from '../../core/health/gauge';
import type { UpstreamHealth } from '../../core/health/health';
import type { RankingQuery, Strategy } from './strategies';

/** The candidates of a model in a pipeline, each with its gauge. It is made once per configuration. */
export interface CandidateSet {
  readonly candidates: readonly Candidate[];
  readonly gauges: readonly ModelGauge[];
  readonly hashes: readonly number[];
  /** Which candidates come behind the others, because their calls are translated. */
  readonly last: readonly boolean[];
  /** Upstreams that are tried before all others if they may be tried and are not resting. */
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
    last: candidates.every(isLast) ? candidates.map(() => false) : candidates.map(isLast),
    first: first && new Set(first),
  };
}

export interface RoutingChoice {
  /** Indices into the set, best first, without the candidates that may not be tried. */
  readonly order: readonly number[];
  /** The gauge of the first candidate if it is untried and this call tries it out. */
  readonly asks: ModelGauge | undefined;
}

export interface RankingInput {
  readonly strategy: Strategy;
  readonly asked: RankingQuery;
  readonly kind: AnswerKind;
  readonly nowMs: number;
  /** The hash of the session, which decides between equals; undefined: a random draw decides. */
  readonly session: number | undefined;
  /** Returns a random number from 0 to 1; the default is `Math.random`. */
  readonly random?: () => number;
}

/** The score added to an upstream that rests as its Retry-After asks. It comes behind all that do not rest. */
const RESTING = 1e12;
const PREFERRED = -1e12;
/** The score added to a candidate whose calls are translated. It comes behind all that speak the client's protocol. */
const TRANSLATED = 1e13;

/** The place of a candidate that may not be tried. */
const LEFT_OUT = Number.POSITIVE_INFINITY;

/**
 * Ranks the candidates that may be tried by score. Candidates whose scores differ by no more than chance share the calls by
 * weight. If every candidate is ejected, all are tried anyway, by score and failure rate. A probe thus always has another
 * candidate to fall back on. A candidate that an operator has disabled is never tried.
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

/** Returns the candidates that may be tried, by place. Each group of equals is in the order of their lots. */
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
 * True if two scores differ by no more than chance. Independent errors add up as the root of their squares. A candidate without
 * measurements has no noise and no equals by chance.
 */
function areEqual(best: Ranked, other: Ranked): boolean {
  const allowed = best.noise === 0 || other.noise === 0 ? 0 : Math.hypot(best.noise, other.noise);
  return other.place - best.place <= allowed;
}

function byLot(equals: readonly Ranked[], set: CandidateSet, input: RankingInput): number[] {
  const lots = equals.map(({ index }) => ({ index, lot: draw(set, index, input) }));
  return lots.sort((one, other) => other.lot - one.lot).map(({ index }) => index);
}

/** Draws the lot of a candidate. If two equals have the weights 3 and 1, the first comes first three times out of four. */
function draw(
  { candidates, hashes }: CandidateSet,
  index: number,
  { session, random = Math.random }: RankingInput,
): number {
  const drawn = session === undefined ? random() : drawFor(session, hashes[index] as number);
  return drawn ** (1 / (candidates[index] as Candidate).upstream.weight);
}

/** Returns the score, raised or lowered if a rest, a translation or a preference counts more than the strategy. */
function placeOf(set: CandidateSet, index: number, gauge: ModelGauge, input: RankingInput, anyIsIn: boolean): number {
  if (gauge.upstream.isDisabledByOperator) return LEFT_OUT;
  const score = scoreOf(set, index, input) + (set.last[index] === true ? TRANSLATED : 0);
  if (!anyIsIn) return score + gauge.failureRate * RESTING;
  if (!gauge.mayBeAsked) return LEFT_OUT;
  if (gauge.isResting) return score + RESTING;
  return set.first?.has(gauge.upstream.name) === true ? score + PREFERRED : score;
}
