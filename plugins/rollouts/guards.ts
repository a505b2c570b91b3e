import type { Guard } from '../../core/rollout';
import { percent } from '../../core/rollout-plan';
import { type ArmCounts, bucketOfShare, bucketsFurther, streamsBeyond, streamsOf, upToMs } from './counts';
import { failsMore, isBeyondMore, isHigher, meanOf, type Sample } from './significance';

/** What a guard finds when it compares the two groups. */
export interface Finding {
  /** That it is no worse than it may be would be this surprising. */
  readonly pValue: number;
  /** In words, for whoever asks why it stopped. */
  says(): string;
}

/** How many calls of a group tell a guard something. */
export function seenBy({ name }: Guard, counts: ArmCounts): number {
  if (name === 'errorRate') return counts.calls;
  return name === 'costRatio' ? counts.charged : streamsOf(counts);
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
  const tried = ({ calls: of, errors: failed }: ArmCounts) => ({ of, failed });
  return { pValue: failsMore(tried(candidate), tried(control)), says };
}

const SLOW = 0.05;

/** Of the candidate's streams more are slower than 95 % of the control group's, with what is tolerated on top. */
function compareTimes({ tolerance }: Guard, candidate: ArmCounts, control: ArmCounts): Finding {
  const bound = bucketOfShare(control, SLOW) ?? 0;
  const tolerated = bound + bucketsFurther(tolerance);
  const tried = ({ firstTokens }: ArmCounts, bucket: number) => ({
    of: streamsOf({ firstTokens }),
    failed: streamsBeyond(firstTokens, bucket),
  });
  const slow = tried(candidate, tolerated);
  const says = () =>
    `${slow.failed} of ${slow.of} streams took longer than ${Math.round(upToMs(tolerated))} ms to their first content (p95 ${p95(candidate)} ms, of the control group ${p95(control)} ms)`;
  return { pValue: isBeyondMore(slow, tried(control, bound)), says };
}

export function p95(counts: ArmCounts): number | undefined {
  const bucket = bucketOfShare(counts, SLOW);
  return bucket === undefined ? undefined : Math.round(upToMs(bucket));
}

function compareCosts({ tolerance }: Guard, candidate: ArmCounts, control: ArmCounts): Finding {
  const sample = ({ charged: of, logCost: sum, logCostSquares: squares }: ArmCounts): Sample => ({ of, sum, squares });
  const times = Math.exp(meanOf(sample(candidate)) - meanOf(sample(control)));
  const says = () =>
    `a call costs ${times.toFixed(3)} times what it costs in the control group (${candidate.charged} and ${control.charged} charged calls)`;
  return { pValue: isHigher(sample(candidate), sample(control), Math.log(tolerance)), says };
}

function rounded(rate: number): string {
  return percent(Number(rate.toPrecision(3)));
}
