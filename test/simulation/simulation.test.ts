import { simulate } from './simulate';

/** `npm run simulation -- --seeds 10000` tells more. */
const SEEDS = 200;

describe('a simulation of processes that die at any moment', () => {
  it('what callers were told is there once, without a gap, and all sums are equal', async function () {
    this.timeout(300_000);
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      await simulate(seed).catch((cause) => {
        throw new Error(`seed ${seed}; repeat it with npm run simulation -- --from ${seed} --seeds 1`, { cause });
      });
    }
  });
});
