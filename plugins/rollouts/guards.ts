import { percent } from '../../core/rollouts/plan';
import type { Guard } from '../../core/rollouts/rollout';
import { effectOn, thinned } from './callers';
import { bucketOfShare, bucketsFurther, countBeyond, countOf, type GroupCounts, type Times, upToMs } from './counts';
import { failsMore, isBeyondMore, isHigher, meanOf, type Sample } from './significance';

/** The result of a guard's comparison of the two groups. */
export interface Finding {
  /** How probable so bad a result would be if the treatment were within the tolerance. */
  readonly pValue: number;
  /** Describes the result for operators who ask why the rollout stopped. */
  says(): string;
}

/** Counts the calls of both groups that a guard can compare. */
export function seenBy(guard: Guard, treatment: GroupCounts, control: GroupCounts): Seen {
  switch (guard.name) {
    case 'errorRate':
      return { treatment: treatment.calls, control: control.calls };
    case 'costRatio':
      return { treatment: treatment.charged, control: control.charged };
    case 'p95FirstTokenMs': {
      const judged = judgedKinds(guard, treatment, control);
      const kinds = judged.length === 0 ? [mostSeen(treatment)] : judged;
      const of = (counts: GroupCounts) => kinds.reduce((sum, kind) => sum + countOf(counts[kind]), 0);
      return { treatment: of(treatment), control: of(control) };
    }
  }
}

export interface Seen {
  readonly treatment: number;
  readonly control: number;
}

/** The kinds of times, compared separately, because a whole answer takes as long as its length. Routing to upstreams separates them too. */
const KINDS = ['firstTokens', 'wholeAnswers'] as const;
type Kind = (typeof KINDS)[number];

function judgedKinds({ minCalls }: Guard, treatment: GroupCounts, control: GroupCounts): readonly Kind[] {
  return KINDS.filter((kind) => countOf(treatment[kind]) >= minCalls && countOf(control[kind]) >= minCalls);
}

function mostSeen(counts: GroupCounts): Kind {
  return countOf(counts.wholeAnswers) > countOf(counts.firstTokens) ? 'wholeAnswers' : 'firstTokens';
}

export function compare(guard: Guard, treatment: GroupCounts, control: GroupCounts): Finding {
  switch (guard.name) {
    case 'errorRate':
      return compareErrors(guard, treatment, control);
    case 'p95FirstTokenMs':
      return compareTimes(guard, treatment, control);
    case 'costRatio':
      return compareCosts(guard, treatment, control);
  }
}

/** Compares the error rates: is the treatment worse by more than the tolerance, and not by chance? */
function compareErrors({ tolerance }: Guard, treatment: GroupCounts, control: GroupCounts): Finding {
  const [rate, before] = [treatment.errors / treatment.calls, control.errors / control.calls];
  const says = () =>
    `${treatment.errors} of ${treatment.calls} calls failed (${rounded(rate)}), of the control group ${control.errors} of ${control.calls} (${rounded(before)})`;
  if (rate <= before + tolerance) return { pValue: 1, says };
  const effect = effectOn.errors(control);
  const tried = ({ calls: of, errors: failed }: GroupCounts) => thinned({ of, failed }, effect);
  return { pValue: failsMore(tried(treatment), tried(control)), says };
}

const SLOW = 0.05;

/**
 * Compares each kind of times and reports the worse. With two kinds either could be slower by chance, so the p-value is multiplied
 * by their number.
 */
function compareTimes(guard: Guard, treatment: GroupCounts, control: GroupCounts): Finding {
  const findings = judgedKinds(guard, treatment, control).map((kind) => compareKind(guard, kind, treatment, control));
  const worst = findings.reduce((one, other) => (other.pValue < one.pValue ? other : one));
  return { pValue: Math.min(1, worst.pValue * findings.length), says: worst.says };
}

const WORDS: Readonly<Record<Kind, readonly [calls: string, until: string]>> = {
  firstTokens: ['streams', 'to their first content'],
  wholeAnswers: ['unstreamed calls', 'to their answer'],
};

/** Tests whether more than 5 % of the treatment's calls are slower than the control group's p95 with the tolerance added. */
function compareKind({ tolerance }: Guard, kind: Kind, { [kind]: own }: GroupCounts, control: GroupCounts): Finding {
  const { [kind]: others } = control;
  const effect = effectOn[kind](control);
  const bound = bucketOfShare(others, SLOW) ?? 0;
  const tolerated = bound + bucketsFurther(tolerance);
  const tried = (times: Times, bucket: number) => ({ of: countOf(times), failed: countBeyond(times, bucket) });
  const slow = tried(own, tolerated);
  const [calls, until] = WORDS[kind];
  const says = () =>
    `${slow.failed} of ${slow.of} ${calls} took longer than ${Math.round(upToMs(tolerated))} ms ${until} (p95 ${p95(own)} ms, of the control group ${p95(others)} ms)`;
  return { pValue: isBeyondMore(thinned(slow, effect), thinned(tried(others, bound), effect)), says };
}

export function p95(times: Times): number | undefined {
  const bucket = bucketOfShare(times, SLOW);
  return bucket === undefined ? undefined : Math.round(upToMs(bucket));
}

function compareCosts({ tolerance }: Guard, treatment: GroupCounts, control: GroupCounts): Finding {
  const effect = effectOn.costs(control);
  const sample = ({ charged: of, logCost: sum, logCostSquares: squares }: GroupCounts): Sample => ({
    of: of / effect,
    sum: sum / effect,
    squares: squares / effect,
  });
  const times = Math.exp(meanOf(sample(treatment)) - meanOf(sample(control)));
  const says = () =>
    `a call costs ${times.toFixed(3)} times what it costs in the control group (${treatment.charged} and ${control.charged} charged calls)`;
  return { pValue: isHigher(sample(treatment), sample(control), Math.log(tolerance)), says };
}

function rounded(rate: number): string {
  return percent(Number(rate.toPrecision(3)));
}
