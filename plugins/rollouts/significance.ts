import type betaincOf = require('@stdlib/math-base-special-betainc');
import type betalnOf = require('@stdlib/math-base-special-betaln');
import type gammalnOf = require('@stdlib/math-base-special-gammaln');

interface SpecialFunctions {
  readonly betainc: typeof betaincOf;
  readonly betaln: typeof betalnOf;
  readonly gammaln: typeof gammalnOf;
}

let loaded: SpecialFunctions | undefined;

/** Loads the functions when a rollout is first judged, because they are 335 modules that every start would have to load. */
function special(): SpecialFunctions {
  loaded ??= {
    betainc: require('@stdlib/math-base-special-betainc'),
    betaln: require('@stdlib/math-base-special-betaln'),
    gammaln: require('@stdlib/math-base-special-gammaln'),
  };
  return loaded;
}

/** One-sided p-values: how probable it is to see the treatment this much worse by chance. */

/** The size of a group, and the number of its failures. */
export interface Tried {
  readonly of: number;
  readonly failed: number;
}

/** Fisher's exact test: how probable it is that at least this many of all failures fall to the treatment by chance. */
export function failsMore(candidate: Tried, control: Tried): number {
  const of = candidate.of + control.of;
  const failed = candidate.failed + control.failed;
  const most = Math.min(failed, candidate.of);
  const allWays = logChoose(of, candidate.of);
  return sumTail(candidate.failed, most, (count) =>
    Math.exp(logChoose(failed, count) + logChoose(of - failed, candidate.of - count) - allWays),
  );
}

/**
 * Returns how probable it is that at least `candidate.failed` of the treatment's values lie beyond a bound by chance.
 * `control.failed` of the control group's values lie beyond that bound. The test is exact for any distribution (Mathisen's test at
 * a quantile of the control group: a beta-binomial tail).
 */
export function isBeyondMore(candidate: Tried, control: Tried): number {
  const [above, within] = [control.failed + 1, control.of - control.failed];
  if (within === 0) return 1;
  const { betaln } = special();
  const prior = betaln(above, within);
  return sumTail(candidate.failed, candidate.of, (count) =>
    Math.exp(logChoose(candidate.of, count) + betaln(count + above, candidate.of - count + within) - prior),
  );
}

/** A sample: its size, sum and sum of squares. */
export interface Sample {
  readonly of: number;
  readonly sum: number;
  readonly squares: number;
}

/** Welch's test of the hypothesis that the treatment's mean exceeds the control group's by at most `tolerance`. */
export function isHigher(candidate: Sample, control: Sample, tolerance: number): number {
  if (candidate.of < 2 || control.of < 2) return 1;
  const difference = meanOf(candidate) - meanOf(control) - tolerance;
  const [one, other] = [varianceOf(candidate) / candidate.of, varianceOf(control) / control.of];
  const variance = one + other;
  // All calls of each group cost the same; the rest is rounding.
  if (variance < 1e-18) return difference > 1e-9 ? 0 : 1;
  const t = difference / Math.sqrt(variance);
  const freedom = variance ** 2 / (one ** 2 / (candidate.of - 1) + other ** 2 / (control.of - 1));
  const tail = special().betainc(freedom / (freedom + t ** 2), freedom / 2, 0.5) / 2;
  return t > 0 ? tail : 1 - tail;
}

export function meanOf({ of, sum }: Sample): number {
  return sum / of;
}

function varianceOf({ of, sum, squares }: Sample): number {
  return Math.max(0, (squares - sum ** 2 / of) / (of - 1));
}

function logChoose(of: number, count: number): number {
  const { gammaln } = special();
  return gammaln(of + 1) - gammaln(count + 1) - gammaln(of - count + 1);
}

/** Sums terms that rise to one peak and then fall. Stops behind the peak once the terms no longer matter. */
function sumTail(from: number, to: number, term: (count: number) => number): number {
  let sum = 0;
  let before = 0;
  for (let count = from; count <= to; count += 1) {
    const each = term(count);
    sum += each;
    if (each < before && each < sum * 1e-12) break;
    before = each;
  }
  return Math.min(1, sum);
}
