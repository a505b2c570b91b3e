import assert from 'node:assert/strict';
import { dayOfCalls } from './arithmetic';
import { simulateSeeds } from './simulate';

/** About 9 ms each; the long stories tell 1,000 more, `npm run simulation -- --seeds 10000` as many as there is time for. */
const SEEDS = 200;

describe('a simulation of processes that die at any moment', () => {
  it('what callers were told is there once, without a gap, and all sums are equal', async function () {
    this.timeout(60_000);
    await simulateSeeds(1, SEEDS);
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
