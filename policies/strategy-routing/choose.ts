import type { Candidate } from '../../core/catalog';
import type { AnswerKind, ModelGauge } from '../../core/upstream-gauge';
import type { Asked, Strategy } from './strategies/strategy';

/** The candidates a model has in a pipeline, each with what is known of it. Made once per configuration. */
export interface Field {
  readonly candidates: readonly Candidate[];
  readonly gauges: readonly ModelGauge[];
  /** Upstreams that are asked before all others, if they may be asked and are not resting. */
  readonly first?: ReadonlySet<string> | undefined;
}

export interface Choice {
  /** Places in the field, best first; who is left out is not among them. */
  readonly order: readonly number[];
  /** The gauge of the first candidate, when this call finds out about it. */
  readonly asks: ModelGauge | undefined;
}

export interface Wish {
  readonly strategy: Strategy;
  readonly asked: Asked;
  readonly kind: AnswerKind;
  readonly nowMs: number;
  /** Puts this one first, if it may be asked and is not resting. */
  readonly preferred: string | undefined;
  /** From 0 to 1, for drawing between equals. */
  readonly random: (candidate: Candidate) => number;
}

/** An upstream that asked for time is behind all that did not. */
const RESTING = 1e12;
const PREFERRED = -1e12;

/** Behind everybody: who is not asked at all. */
const LEFT_OUT = Number.POSITIVE_INFINITY;

/**
 * Puts the candidates that may be asked into order: scores first, then a draw by weight. When all of them are ejected they
 * are all asked, whose time is over and then the most reliable first: the last candidate is never ejected, and who probes has
 * somebody else to go to. What an operator has taken out stays out.
 */
export function choose(field: Field, wish: Wish): Choice {
  const { gauges } = field;
  let anyIsIn = false;
  for (const gauge of gauges) {
    gauge.look(wish.kind, wish.nowMs);
    if (gauge.state === 'in' && !gauge.upstream.isTakenOut) anyIsIn = true;
  }
  const order = inOrder(field, wish, anyIsIn);
  const first = order[0] === undefined ? undefined : gauges[order[0]];
  return { order, asks: first?.isUntried === true ? first : undefined };
}

export function scoreOf({ candidates, gauges }: Field, index: number, { strategy, asked }: Wish): number {
  return strategy(candidates[index] as Candidate, gauges[index] as ModelGauge, asked);
}

/** Used again by every choice; nothing waits in the middle of one. */
let places = new Float64Array(64);
let draws = new Float64Array(64);
let ordered = new Int32Array(64);

/**
 * The candidates that may be asked, by place and then by draw. On plain numbers, each put between those before it by halves:
 * measured with 50 equal candidates, two thirds of the time of going through them, and a sixth of a comparison function's.
 */
function inOrder(field: Field, wish: Wish, anyIsIn: boolean): number[] {
  const { candidates, gauges } = field;
  if (places.length < gauges.length) {
    places = new Float64Array(gauges.length * 2);
    draws = new Float64Array(gauges.length * 2);
    ordered = new Int32Array(gauges.length * 2);
  }
  const [placed, drawn, order] = [places, draws, ordered];
  let count = 0;
  for (let index = 0; index < gauges.length; index += 1) {
    const place = placeOf(field, index, gauges[index] as ModelGauge, wish, anyIsIn);
    if (place === LEFT_OUT) continue;
    const lot = draw(candidates[index] as Candidate, wish);
    placed[index] = place;
    drawn[index] = lot;
    let from = 0;
    let to = count;
    while (from < to) {
      const middle = (from + to) >> 1;
      const other = order[middle] as number;
      const otherPlace = placed[other] as number;
      if (otherPlace < place || (otherPlace === place && (drawn[other] as number) >= lot)) from = middle + 1;
      else to = middle;
    }
    for (let at = count; at > from; at -= 1) order[at] = order[at - 1] as number;
    order[from] = index;
    count += 1;
  }
  const best: number[] = [];
  for (let at = 0; at < count; at += 1) best.push(order[at] as number);
  return best;
}

/** Of equals with weights 3 and 1 the first comes first three times of four. */
function draw(candidate: Candidate, { random }: Wish): number {
  const { weight } = candidate.upstream;
  return weight === 1 ? random(candidate) : random(candidate) ** (1 / weight);
}

/** The score, behind or before everything else where something else counts more. */
function placeOf(field: Field, index: number, gauge: ModelGauge, wish: Wish, anyIsIn: boolean): number {
  if (gauge.upstream.isTakenOut) return LEFT_OUT;
  const score = scoreOf(field, index, wish);
  if (!anyIsIn) return score + gauge.failureRate * RESTING;
  if (!gauge.mayBeAsked) return LEFT_OUT;
  if (gauge.isResting) return score + RESTING;
  const isFirst = gauge.upstream.name === wish.preferred || field.first?.has(gauge.upstream.name) === true;
  return isFirst ? score + PREFERRED : score;
}
