import { type GroupCounts, type SlotCounts, type Times, upToMs } from './counts';
import type { Tried } from './significance';

/**
 * How much less calls tell when they come from few callers. The tests of significance take calls for independent; those of one caller are
 * alike: dear, or slow, or wrong. Between slots of callers sums vary more than independent calls would let them, and by that factor
 * (the design effect) there are fewer calls to go by. It is that of the control group, which has many callers, for both groups.
 */
export const effectOn = {
  /** By the slot in the middle: a caller that does nothing but wrong must not hide a treatment that fails. */
  errors: ({ slots }: GroupCounts): number => {
    const parts = [...slots.values()];
    const rate = medianOf(parts.map(({ calls, errors }) => errors / calls));
    if (rate === 0 || rate === 1) return 1;
    const surprises = parts.map(({ calls, errors }) => (errors - rate * calls) ** 2 / (calls * rate * (1 - rate)));
    return Math.max(1, medianOf(surprises) / MEDIAN_OF_CHI_SQUARE);
  },
  costs: (control: GroupCounts): number => {
    const { charged, logCost, logCostSquares } = control;
    const scatter = logCostSquares - logCost ** 2 / charged;
    return effectOf(control, scatter, ({ charged: of, logCost: sum }) => ({ of, sum }));
  },
  firstTokens: (control: GroupCounts): number =>
    effectOf(control, scatterOf(control.firstTokens), ({ streams: of, logFirstToken: sum }) => ({ of, sum })),
  wholeAnswers: (control: GroupCounts): number =>
    effectOf(control, scatterOf(control.wholeAnswers), ({ answers: of, logWhole: sum }) => ({ of, sum })),
};

/** With one degree of freedom. */
const MEDIAN_OF_CHI_SQUARE = 0.4549;

function medianOf(values: readonly number[]): number {
  return [...values].sort((one, other) => one - other)[values.length >> 1] ?? 0;
}

interface Part {
  readonly of: number;
  readonly sum: number;
}

/** `scatter`: the sum of the squared distances of all calls from their mean. */
function effectOf({ slots }: GroupCounts, scatter: number, read: (slot: SlotCounts) => Part): number {
  const parts = [...slots.values()].map(read).filter(({ of }) => of > 0);
  if (parts.length < 2) return 1;
  const all = parts.reduce((one, other) => ({ of: one.of + other.of, sum: one.sum + other.sum }));
  const mean = all.sum / all.of;
  const between = parts.reduce((sum, part) => sum + (part.sum - mean * part.of) ** 2, 0);
  const expected = scatter * (1 - 1 / parts.length);
  return expected > 0 ? Math.max(1, between / expected) : 1;
}

function scatterOf(times: Times): number {
  let [of, sum, squares] = [0, 0, 0];
  for (const [bucket, calls] of times) {
    const log = Math.log(upToMs(bucket));
    of += calls;
    sum += calls * log;
    squares += calls * log ** 2;
  }
  return of === 0 ? 0 : squares - sum ** 2 / of;
}

/** As few as there would be if all were independent; what is left over of a call counts as none. */
export function thinned({ of, failed }: Tried, effect: number): Tried {
  if (effect === 1) return { of, failed };
  const fewer = Math.max(1, Math.floor(of / effect));
  return { of: fewer, failed: Math.round((failed / of) * fewer) };
}
