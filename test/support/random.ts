/** Random numbers that a seed repeats. */
export interface Random {
  /** Returns an integer from 0 to below the limit. */
  below(limit: number): number;
  pick<T>(choices: readonly T[]): T;
}

/** Makes random numbers by mulberry32: 32 bits of state, good enough to choose faults. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    below,
    pick: (choices) => {
      const choice = choices[below(choices.length)];
      if (choice === undefined) throw new RangeError('nothing to choose from');
      return choice;
    },
  };
}
