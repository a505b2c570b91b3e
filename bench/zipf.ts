import { seeded } from '../test/support/random';

const DRAWN_FROM = 2 ** 32;

/** Draws `count` numbers from 0 to `of` - 1: number n with a probability proportional to 1 / (n + 1) ^ s. The same seed repeats the draws. */
export function zipfDraws(count: number, { of, s, seed }: { of: number; s: number; seed: number }): number[] {
  const random = seeded(seed);
  let total = 0;
  const sums = Float64Array.from({ length: of }, (_, index) => (total += 1 / (index + 1) ** s));
  return Array.from({ length: count }, () => firstAbove(sums, (random.below(DRAWN_FROM) / DRAWN_FROM) * total));
}

/** Returns the index of the first number above `wanted` in an ascending list. */
function firstAbove(ascending: Float64Array, wanted: number): number {
  let [low, high] = [0, ascending.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ascending[middle] ?? 0) > wanted) high = middle;
    else low = middle + 1;
  }
  return low;
}
