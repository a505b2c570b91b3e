import { drawFor, textHash } from '../../core/catalog/affinity';
import { type Candidate, isLast } from '../../core/catalog/catalog';
import type { AnswerKind, ModelGauge } from '../../core/health/gauge';
import type { UpstreamHealth } from '../../core/health/health';
import type { Asked, Strategy } from './strategies/strategy';

/** The candidates of a model in a pipeline, each with its gauge. It is made once per configuration. */
export interface CandidateSet {
  readonly candidates: readonly Candidate[];
  readonly gauges: readonly ModelGauge[];
  /** Hashes of the upstreams' names. */
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

export interface Choice {
  /** Indices into the set, best first, without the candidates that may not be tried. */
  readonly order: readonly number[];
  /** The gauge of the first candidate if it is untried and this call tries it out. */
  readonly asks: ModelGauge | undefined;
}

export interface RankingInput {
  readonly strategy: Strategy;
  readonly asked: Asked;
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
export function choose(set: CandidateSet, input: RankingInput): Choice {
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

/**
 * Memory that every choice reuses, because no choice waits in the middle. The first three hold place, noise and lot by index of
 * the candidate; `ordered` holds indices.
 */
let places = new Float64Array(64);
let noises = new Float64Array(64);
let lots = new Float64Array(64);
let ordered = new Int32Array(64);

/** Returns the candidates that may be tried, by place, and equals by lot. Inserts each with a binary search, on plain numbers. */
function inOrder(set: CandidateSet, input: RankingInput, anyIsIn: boolean): number[] {
  const { gauges } = set;
  makeRoom(gauges.length);
  let count = 0;
  for (let index = 0; index < gauges.length; index += 1) {
    const gauge = gauges[index] as ModelGauge;
    const place = placeOf(set, index, gauge, input, anyIsIn);
    if (place === LEFT_OUT) continue;
    places[index] = place;
    noises[index] = input.strategy.noise(gauge);
    insertAt(findPlace(place, count), count, index);
    count += 1;
  }
  shareAmongEquals(set, input, count);
  return Array.from(ordered.subarray(0, count));
}

function makeRoom(count: number): void {
  if (places.length >= count) return;
  [places, noises, lots] = [new Float64Array(count * 2), new Float64Array(count * 2), new Float64Array(count * 2)];
  ordered = new Int32Array(count * 2);
}

/** Returns the position behind those of the first `count` whose place is not higher. */
function findPlace(place: number, count: number): number {
  let [from, to] = [0, count];
  if (count > 0 && (places[ordered[count - 1] as number] as number) <= place) from = count;
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((places[ordered[middle] as number] as number) <= place) from = middle + 1;
    else to = middle;
  }
  return from;
}

function insertAt(at: number, count: number, index: number): void {
  ordered.copyWithin(at + 1, at, count);
  ordered[at] = index;
}

/** Orders each group of equals by lot: first those equal to the best, then those equal to the best of the rest, and so on. */
function shareAmongEquals(set: CandidateSet, input: RankingInput, count: number): void {
  for (let from = 0; from < count; ) {
    let to = from + 1;
    while (to < count && areEqual(ordered[from] as number, ordered[to] as number)) to += 1;
    if (to - from > 1) sortByLot(set, input, from, to);
    from = to;
  }
}

/**
 * True if two scores differ by no more than chance. Independent errors add up as the root of their squares. A candidate without
 * measurements has no noise and no equals by chance.
 */
function areEqual(best: number, other: number): boolean {
  const [one, two] = [noises[best] as number, noises[other] as number];
  const allowed = one === 0 || two === 0 ? 0 : Math.sqrt(one * one + two * two);
  return (places[other] as number) - (places[best] as number) <= allowed;
}

function sortByLot(set: CandidateSet, input: RankingInput, from: number, to: number): void {
  for (let at = from; at < to; at += 1) {
    const index = ordered[at] as number;
    lots[index] = draw(set, index, input);
    let behind = at;
    for (; behind > from && (lots[ordered[behind - 1] as number] as number) < (lots[index] as number); behind -= 1)
      ordered[behind] = ordered[behind - 1] as number;
    ordered[behind] = index;
  }
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
