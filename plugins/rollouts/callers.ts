import { type GroupCounts, type SlotCounts, type Times, upToMs } from './counts';
import type { Tried } from './significance';

/**
 * How much less calls count because they come from few callers. The tests of significance assume independent calls, but the calls
 * of one caller are alike: costly, slow or wrong. Sums vary more between slots of callers than sums of independent calls; that
 * factor is the design effect. Both groups use the effect of the control group, because it has many callers.
 */
export const effectOn = {
  /** Returns the effect of the median slot, because a caller whose calls all fail must not hide a treatment that fails. */
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

/** The median of the chi-square distribution with one degree of freedom. */
const MEDIAN_OF_CHI_SQUARE = 0.4549;

function medianOf(values: readonly number[]): number {
  return [...values].sort((one, other) => one - other)[values.length >> 1] ?? 0;
}

interface Part {
  readonly of: number;
  readonly sum: number;
}

/** Returns the design effect. `scatter` is the sum of the squared distances of all calls from their mean. */
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

/** Reduces calls to the number of independent calls that would tell as much. A fraction of a call counts as none. */
export function thinned({ of, failed }: Tried, effect: number): Tried {
  if (effect === 1) return { of, failed };
  const fewer = Math.max(1, Math.floor(of / effect));
  return { of: fewer, failed: Math.round((failed / of) * fewer) };
}
