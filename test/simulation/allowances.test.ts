import assert from 'node:assert/strict';
import { simulateAllowances } from './allowance-story';

/** The number of seeds, at about 25 ms each. The long tests run 1,000 more, `npm run simulation -- --allowances --seeds 10000` any number. */
const SEEDS = Number(process.env['SIMULATED_SEEDS'] ?? 200);

describe('a simulation of nodes with allowances', () => {
  it('charges each call once, admits no call without money or on a stopped key or account, and refuses none with money', async function () {
    this.timeout(600_000);
    const { admitted, refused, refusedForSilence, uncovered, ...faults } = await simulateAllowances(1, SEEDS);
    // Without each of these events the simulation would prove nothing.
    for (const [name, count] of Object.entries({ admitted, refused, ...faults })) assert.ok(count > 0, name);
    assert.ok(refusedForSilence <= refused / 100, `${refusedForSilence} of ${refused} were refused for silence`);
    assert.ok(uncovered < admitted / 20, `${uncovered} leases ended over open calls`);
  });
});
