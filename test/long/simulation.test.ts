import { simulateAllowances } from '../simulation/allowance-story';
import { simulateSeeds } from '../simulation/simulate';

describe('a thousand simulations of processes that die at any moment', () => {
  it('what callers were told is there once, without a gap, and all sums are equal', async function () {
    this.timeout(300_000);
    await simulateSeeds(201, 1_200);
  });
});

describe('a thousand simulations of nodes that take money in advance', () => {
  it('charges each call once, admits none without money or after a stop, and refuses none that has money', async function () {
    this.timeout(300_000);
    await simulateAllowances(201, 1_200);
  });
});
