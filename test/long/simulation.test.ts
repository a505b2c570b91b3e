import { simulateAllowances } from '../simulation/allowance-story';
import { simulateSeeds } from '../simulation/simulate';

describe('a thousand simulations of processes that crash at any moment', () => {
  it('apply every change that was acknowledged to a caller exactly once and without a gap, and all sums agree', async function () {
    this.timeout(300_000);
    await simulateSeeds(201, 1_200);
  });
});

describe('a thousand simulations of nodes that take money in advance', () => {
  it('charge each call once, admit no call without money or after a freeze or revocation, and refuse no call with money', async function () {
    this.timeout(300_000);
    await simulateAllowances(201, 1_200);
  });
});
