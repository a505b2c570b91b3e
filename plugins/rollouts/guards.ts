import { formatUsd } from '../../core/money';
import { percent } from '../../core/rollouts/plan';
import type { Guard } from '../../core/rollouts/rollout';
import { bucketOfShare, bucketsFurther, type Counts, countOf, type Measure, measured, upTo } from './counts';

/** The calls of a group that a guard compares, and how many of them are beyond its line. */
export interface Share {
  readonly of: number;
  readonly beyond: number;
}

/** A line of a guard, with the calls of both groups. */
export interface Line {
  readonly treatment: Share;
  readonly control: Share;
  /** What the calls beyond the line did, for operators. */
  readonly did: string;
}

/** Returns the lines of a guard. Streams and unstreamed calls have a line each, because a whole answer takes as long as its length. */
export function linesOf({ name, times }: Guard, treatment: Counts, control: Counts): readonly Line[] {
  switch (name) {
    case 'errorRate': {
      const failed = (group: Counts) => ({ of: countOf(group, 'calls'), beyond: countOf(group, 'errors') });
      return [{ treatment: failed(treatment), control: failed(control), did: 'calls failed' }];
    }
    case 'p95FirstTokenMs':
      return [
        line('firstToken', 0.05, (ms) => `streams took longer than ${ms.toFixed()} ms to their first content`),
        line('whole', 0.05, (ms) => `unstreamed calls took longer than ${ms.toFixed()} ms to their answer`),
      ];
    case 'costRatio':
      return [line('cost', 0.5, (costE8) => `calls cost more than ${formatUsd(BigInt(Math.round(costE8)))} USD`)];
  }

  /** Returns the line at `times` the value that this share of the control group's calls exceed. */
  function line(measure: Measure, share: number, did: (value: number) => string): Line {
    const bucket = (bucketOfShare(control, measure, share) ?? 0) + bucketsFurther(times);
    const beyond = (group: Counts) => ({ of: measured(group, measure), beyond: measured(group, measure, bucket) });
    return { treatment: beyond(treatment), control: beyond(control), did: did(upTo(bucket)) };
  }
}

/** Tells whether the treatment is worse: at least so many of its calls are beyond the line, and of the control's at most so many. */
export function isWorse({ treatment, control }: Line, { above }: Guard): boolean {
  return intervalOf(treatment).least > intervalOf(control).most + above;
}

/** Returns the 95 % Wilson interval: the shares that make a count like this one likely. */
export function intervalOf({ of, beyond }: Share): { readonly least: number; readonly most: number } {
  const z = 1.96;
  const share = beyond / of;
  const middle = share + z ** 2 / (2 * of);
  const half = z * Math.sqrt((share * (1 - share)) / of + z ** 2 / (4 * of ** 2));
  const scale = 1 + z ** 2 / of;
  return { least: (middle - half) / scale, most: (middle + half) / scale };
}

export function describeLine({ treatment, control, did }: Line): string {
  const [least, most] = [intervalOf(treatment).least, intervalOf(control).most].map(rounded);
  return `${treatment.beyond} of ${treatment.of} ${did} (at least ${least}), of the control group ${control.beyond} of ${control.of} (at most ${most})`;
}

function rounded(share = 0): string {
  return percent(Number(share.toPrecision(3)));
}
