import type { Candidate } from '../../core/catalog';
import type { AnswerKind, ModelGauge } from '../../core/upstream-gauge';
import type { Asked, Strategy } from './strategies/strategy';

/** The candidates a model has in a pipeline, each with what is known of it. Made once per configuration. */
export interface Field {
  readonly candidates: readonly Candidate[];
  readonly gauges: readonly ModelGauge[];
}

export interface Choice {
  /** Best first. */
  readonly ranked: readonly Ranked[];
  /** The gauge of the first candidate, when this call finds out about it. */
  readonly asks: ModelGauge | undefined;
}

export interface Ranked {
  readonly candidate: Candidate;
  readonly gauge: ModelGauge;
  readonly score: number;
  /** The score, behind or before everything else where something else counts more. */
  readonly place: number;
  /** Drawn when there is an equal; -1 before. */
  drawn: number;
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

/**
 * Puts the candidates that may be asked into order: scores first, then a draw by weight. When all of them are ejected they
 * are all asked, the most reliable first: the last candidate is never ejected. What an operator has taken out stays out.
 */
export function choose({ candidates, gauges }: Field, wish: Wish): Choice {
  let anyMayBeAsked = false;
  for (const gauge of gauges) {
    gauge.look(wish.kind, wish.nowMs);
    if (gauge.mayBeAsked && !gauge.upstream.isTakenOut) anyMayBeAsked = true;
  }
  const ranked: Ranked[] = [];
  for (let index = 0; index < candidates.length; index += 1) {
    const candidate = candidates[index] as Candidate;
    const gauge = gauges[index] as ModelGauge;
    if (gauge.upstream.isTakenOut || (anyMayBeAsked && !gauge.mayBeAsked)) continue;
    const score = wish.strategy(candidate, gauge, wish.asked);
    const place = placeOf(score, gauge, candidate, anyMayBeAsked, wish);
    insert(ranked, { candidate, gauge, score, place, drawn: -1 }, wish);
  }
  const first = ranked[0]?.gauge;
  return { ranked, asks: first?.isUntried === true ? first : undefined };
}

function placeOf(score: number, gauge: ModelGauge, candidate: Candidate, anyMayBeAsked: boolean, wish: Wish): number {
  if (!anyMayBeAsked) return score + gauge.failureRate * RESTING;
  if (gauge.isResting) return score + RESTING;
  return candidate.upstream.name === wish.preferred ? score + PREFERRED : score;
}

/** Insertion keeps fifty candidates in order within a few microseconds, and most come nearly sorted. */
function insert(ranked: Ranked[], newcomer: Ranked, wish: Wish): void {
  let index = ranked.length;
  for (; index > 0; index -= 1) {
    const before = ranked[index - 1] as Ranked;
    if (!isBefore(newcomer, before, wish)) break;
    ranked[index] = before;
  }
  ranked[index] = newcomer;
}

function isBefore(one: Ranked, other: Ranked, wish: Wish): boolean {
  if (one.place !== other.place) return one.place < other.place;
  return drawOf(one, wish) > drawOf(other, wish);
}

/** Of equals with weights 3 and 1 the first comes first three times of four. */
function drawOf(ranked: Ranked, { random }: Wish): number {
  if (ranked.drawn < 0) ranked.drawn = random(ranked.candidate) ** (1 / ranked.candidate.upstream.weight);
  return ranked.drawn;
}
