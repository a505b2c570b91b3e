import { simulateSeeds } from '../simulation/simulate';

describe('a thousand simulations of processes that die at any moment', () => {
  it('what callers were told is there once, without a gap, and all sums are equal', async function () {
    this.timeout(300_000);
    await simulateSeeds(201, 1_200);
  });
});
