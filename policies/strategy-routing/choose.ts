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
  /** From 0 to 1, for drawing between equals; without it chance decides. */
  readonly random: ((candidate: Candidate) => number) | undefined;
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

/** Used again by every choice; nothing waits in the middle of one. By index of the candidate: place and lot; then indices alone. */
let places = new Float64Array(64);
let lots = new Float64Array(64);
let visited = new Int32Array(64);
let ordered = new Int32Array(64);

/**
 * The candidates that may be asked, by place and then by lot. On plain numbers, each put between those before it by halves. Where
 * chance alone decides between equals they are visited by chance and draw no lots: nearly all are put behind the last then,
 * and fifty equal ones take a third of the time.
 */
function inOrder(field: Field, wish: Wish, anyIsIn: boolean): number[] {
  const { candidates, gauges } = field;
  makeRoom(gauges.length);
  const [order, toVisit] = [ordered, visited];
  const drawsLots = wish.random !== undefined || !areEven(candidates);
  visitAll(toVisit, gauges.length, !drawsLots);
  let count = 0;
  for (let visit = 0; visit < gauges.length; visit += 1) {
    const index = toVisit[visit] as number;
    const place = placeOf(field, index, gauges[index] as ModelGauge, wish, anyIsIn);
    if (place === LEFT_OUT) continue;
    const lot = drawsLots ? draw(candidates[index] as Candidate, wish) : 0;
    places[index] = place;
    lots[index] = lot;
    let to = count;
    let from = count > 0 && precedes(order[count - 1] as number, place, lot) ? count : 0;
    while (from < to) {
      const middle = (from + to) >> 1;
      if (precedes(order[middle] as number, place, lot)) from = middle + 1;
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

function makeRoom(count: number): void {
  if (places.length >= count) return;
  [places, lots] = [new Float64Array(count * 2), new Float64Array(count * 2)];
  [visited, ordered] = [new Int32Array(count * 2), new Int32Array(count * 2)];
}

/** As they stand, or in an order that is as likely as any other. */
function visitAll(toVisit: Int32Array, count: number, byChance: boolean): void {
  for (let index = 0; index < count; index += 1) {
    const at = byChance ? Math.floor(Math.random() * (index + 1)) : index;
    toVisit[index] = toVisit[at] as number;
    toVisit[at] = index;
  }
}

function precedes(index: number, place: number, lot: number): boolean {
  const other = places[index] as number;
  return other < place || (other === place && (lots[index] as number) >= lot);
}

function areEven(candidates: readonly Candidate[]): boolean {
  const weight = candidates[0]?.upstream.weight;
  for (const { upstream } of candidates) if (upstream.weight !== weight) return false;
  return true;
}

/** Of equals with weights 3 and 1 the first comes first three times of four. */
function draw(candidate: Candidate, { random = Math.random }: Wish): number {
  return random(candidate) ** (1 / candidate.upstream.weight);
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
