import { drawFor, textHash } from '../../core/catalog/affinity';
import { type Candidate, isLast } from '../../core/catalog/catalog';
import type { AnswerKind, ModelGauge } from '../../core/health/gauge';
import type { UpstreamHealth } from '../../core/health/health';
import type { Asked, Strategy } from './strategies/strategy';

/** The candidates a model has in a pipeline, each with what is known of it. Made once per configuration. */
export interface CandidateSet {
  readonly candidates: readonly Candidate[];
  readonly gauges: readonly ModelGauge[];
  /** Hashes of the upstreams' names. */
  readonly hashes: readonly number[];
  /** Which of them stand behind the others, because calls are translated for them. */
  readonly last: readonly boolean[];
  /** Upstreams that are asked before all others, if they may be asked and are not resting. */
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
  /** Places in the set, best first; who is left out is not among them. */
  readonly order: readonly number[];
  /** The gauge of the first candidate, when this call finds out about it. */
  readonly asks: ModelGauge | undefined;
}

export interface RankingInput {
  readonly strategy: Strategy;
  readonly asked: Asked;
  readonly kind: AnswerKind;
  readonly nowMs: number;
  /** The hash of the session, which draws between equals; undefined where chance does. */
  readonly session: number | undefined;
  /** What chance says, from 0 to 1; `Math.random` unless given. */
  readonly random?: () => number;
}

/** An upstream that asked for time is behind all that did not. */
const RESTING = 1e12;
const PREFERRED = -1e12;
/** An upstream that does not speak the call's protocol is behind all that do. */
const TRANSLATED = 1e13;

/** Behind everybody: who is not asked at all. */
const LEFT_OUT = Number.POSITIVE_INFINITY;

/**
 * Puts the candidates that may be asked into order: scores first, then a draw by weight among those whose scores differ by no
 * more than chance. When all of them are ejected they
 * are all asked, whose time is over and then the most reliable first: the last candidate is never ejected, and who probes has
 * somebody else to go to. What an operator has taken out stays out.
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

/** Used again by every choice; nothing waits in the middle of one. By index of the candidate: place, noise and lot; then indices alone. */
let places = new Float64Array(64);
let noises = new Float64Array(64);
let lots = new Float64Array(64);
let ordered = new Int32Array(64);

/** The candidates that may be asked, by place, and equals by lot. On plain numbers, each put between those before it by halves. */
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

/** Behind all of the first `count` that have no higher place. */
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

/** Puts those that equal the best of what is left into the order of their lots, again and again until nobody is left. */
function shareAmongEquals(set: CandidateSet, input: RankingInput, count: number): void {
  for (let from = 0; from < count; ) {
    let to = from + 1;
    while (to < count && areEqual(ordered[from] as number, ordered[to] as number)) to += 1;
    if (to - from > 1) sortByLot(set, input, from, to);
    from = to;
  }
}

/** Two independent errors add up like the sides of a right angle. What is not measured has no noise, and no equals by chance. */
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

/** Of equals with weights 3 and 1 the first comes first three times of four. */
function draw(
  { candidates, hashes }: CandidateSet,
  index: number,
  { session, random = Math.random }: RankingInput,
): number {
  const drawn = session === undefined ? random() : drawFor(session, hashes[index] as number);
  return drawn ** (1 / (candidates[index] as Candidate).upstream.weight);
}

/** The score, behind or before everything else where something else counts more. */
function placeOf(set: CandidateSet, index: number, gauge: ModelGauge, input: RankingInput, anyIsIn: boolean): number {
  if (gauge.upstream.isDisabledByOperator) return LEFT_OUT;
  const score = scoreOf(set, index, input) + (set.last[index] === true ? TRANSLATED : 0);
  if (!anyIsIn) return score + gauge.failureRate * RESTING;
  if (!gauge.mayBeAsked) return LEFT_OUT;
  if (gauge.isResting) return score + RESTING;
  return set.first?.has(gauge.upstream.name) === true ? score + PREFERRED : score;
}
