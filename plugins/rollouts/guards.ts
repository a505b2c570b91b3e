import { percent } from '../../core/rollouts/plan';
import type { Guard } from '../../core/rollouts/rollout';
import { effectOn, thinned } from './callers';
import { type ArmCounts, bucketOfShare, bucketsFurther, countBeyond, countOf, type Times, upToMs } from './counts';
import { failsMore, isBeyondMore, isHigher, meanOf, type Sample } from './significance';

/** What a guard finds when it compares the two groups. */
export interface Finding {
  /** That it is no worse than it may be would be this surprising. */
  readonly pValue: number;
  /** In words, for whoever asks why it stopped. */
  says(): string;
}

/** How many calls of both groups tell a guard something. */
export function seenBy(guard: Guard, candidate: ArmCounts, control: ArmCounts): Seen {
  switch (guard.name) {
    case 'errorRate':
      return { candidate: candidate.calls, control: control.calls };
    case 'costRatio':
      return { candidate: candidate.charged, control: control.charged };
    case 'p95FirstTokenMs': {
      const judged = judgedKinds(guard, candidate, control);
      const kinds = judged.length === 0 ? [mostSeen(candidate)] : judged;
      const of = (counts: ArmCounts) => kinds.reduce((sum, kind) => sum + countOf(counts[kind]), 0);
      return { candidate: of(candidate), control: of(control) };
    }
  }
}

export interface Seen {
  readonly candidate: number;
  readonly control: number;
}

/** As for the choice of an upstream: whole answers take as long as they are, so they are compared with their like only. */
const KINDS = ['firstTokens', 'wholeAnswers'] as const;
type Kind = (typeof KINDS)[number];

function judgedKinds({ minCalls }: Guard, candidate: ArmCounts, control: ArmCounts): readonly Kind[] {
  return KINDS.filter((kind) => countOf(candidate[kind]) >= minCalls && countOf(control[kind]) >= minCalls);
}

function mostSeen(counts: ArmCounts): Kind {
  return countOf(counts.wholeAnswers) > countOf(counts.firstTokens) ? 'wholeAnswers' : 'firstTokens';
}

export function compare(guard: Guard, candidate: ArmCounts, control: ArmCounts): Finding {
  switch (guard.name) {
    case 'errorRate':
      return compareErrors(guard, candidate, control);
    case 'p95FirstTokenMs':
      return compareTimes(guard, candidate, control);
    case 'costRatio':
      return compareCosts(guard, candidate, control);
  }
}

/** Worse beyond chance, and by more than is tolerated. */
function compareErrors({ tolerance }: Guard, candidate: ArmCounts, control: ArmCounts): Finding {
  const [rate, before] = [candidate.errors / candidate.calls, control.errors / control.calls];
  const says = () =>
    `${candidate.errors} of ${candidate.calls} calls failed (${rounded(rate)}), of the control group ${control.errors} of ${control.calls} (${rounded(before)})`;
  if (rate <= before + tolerance) return { pValue: 1, says };
  const effect = effectOn.errors(control);
  const tried = ({ calls: of, errors: failed }: ArmCounts) => thinned({ of, failed }, effect);
  return { pValue: failsMore(tried(candidate), tried(control)), says };
}

const SLOW = 0.05;

/** Of two kinds of times either could be found slower by chance: what is found counts for as many. */
function compareTimes(guard: Guard, candidate: ArmCounts, control: ArmCounts): Finding {
  const findings = judgedKinds(guard, candidate, control).map((kind) => compareKind(guard, kind, candidate, control));
  const worst = findings.reduce((one, other) => (other.pValue < one.pValue ? other : one));
  return { pValue: Math.min(1, worst.pValue * findings.length), says: worst.says };
}

const WORDS: Readonly<Record<Kind, readonly [calls: string, until: string]>> = {
  firstTokens: ['streams', 'to their first content'],
  wholeAnswers: ['unstreamed calls', 'to their answer'],
};

/** Of the candidate's calls more are slower than 95 % of the control group's, with what is tolerated on top. */
function compareKind({ tolerance }: Guard, kind: Kind, { [kind]: own }: ArmCounts, control: ArmCounts): Finding {
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

function compareCosts({ tolerance }: Guard, candidate: ArmCounts, control: ArmCounts): Finding {
  const effect = effectOn.costs(control);
  const sample = ({ charged: of, logCost: sum, logCostSquares: squares }: ArmCounts): Sample => ({
    of: of / effect,
    sum: sum / effect,
    squares: squares / effect,
  });
  const times = Math.exp(meanOf(sample(candidate)) - meanOf(sample(control)));
  const says = () =>
    `a call costs ${times.toFixed(3)} times what it costs in the control group (${candidate.charged} and ${control.charged} charged calls)`;
  return { pValue: isHigher(sample(candidate), sample(control), Math.log(tolerance)), says };
}

function rounded(rate: number): string {
  return percent(Number(rate.toPrecision(3)));
}
