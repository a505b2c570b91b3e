import assert from 'node:assert/strict';
import { simulateAllowances } from './allowance-story';

/** About 25 ms each; the long stories tell 1,000 more, `npm run simulation -- --allowances --seeds 10000` as many as there is time for. */
const SEEDS = Number(process.env['SIMULATED_SEEDS'] ?? 200);

describe('a simulation of nodes that take money in advance', () => {
  it('charges each call once, admits none without money or after a stop, and refuses none that has money', async function () {
    this.timeout(600_000);
    const { admitted, refused, refusedForSilence, uncovered, ...faults } = await simulateAllowances(1, SEEDS);
    // Otherwise it shows nothing.
    for (const [name, count] of Object.entries({ admitted, refused, ...faults })) assert.ok(count > 0, name);
    assert.ok(refusedForSilence <= refused / 100, `${refusedForSilence} of ${refused} were refused for silence`);
    assert.ok(uncovered < admitted / 20, `${uncovered} leases ended over open calls`);
  });
});
