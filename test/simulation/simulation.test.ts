import assert from 'node:assert/strict';
import { dayOfCalls } from './arithmetic';
import { simulateSeeds } from './simulate';

/** The number of seeds, at about 9 ms each. The long tests run 1,000 more, `npm run simulation -- --seeds 10000` any number. */
const SEEDS = 200;

describe('a simulation of processes that crash at any moment', () => {
  it('charges each acknowledged call exactly once, without a gap in entries, and all sums are equal', async function () {
    this.timeout(60_000);
    await simulateSeeds(1, SEEDS);
  });
});

describe('a day of calls with random prices', () => {
  it('has the same sum, to the smallest unit, in prices, entries, records, spending of keys and balances', async function () {
    this.timeout(120_000);
    const day = await dayOfCalls(50_000, 1);
    assert.ok(
      day.charges > 40_000 && day.shortfalls > 0,
      JSON.stringify(day, (_, each) => (typeof each === 'bigint' ? `${each}` : each)),
    );
  });
});
