import assert from 'node:assert/strict';
import { dayOfCalls } from './arithmetic';
import { simulate } from './simulate';

/** About 9 ms each; `npm run simulation -- --seeds 10000` tells more. */
const SEEDS = 1_000;

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

describe('a day of calls with random prices', () => {
  it('is the same sum to the unit as priced, as entries, as records, as spending of keys and as balances', async function () {
    this.timeout(120_000);
    const day = await dayOfCalls(50_000, 1);
    assert.ok(
      day.charges > 40_000 && day.shortfalls > 0,
      JSON.stringify(day, (_, each) => (typeof each === 'bigint' ? `${each}` : each)),
    );
  });
});
