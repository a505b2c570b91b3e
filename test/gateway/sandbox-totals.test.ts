import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateway';
import { readMetrics } from '../support/metrics';
import { running, SANDBOX_GATEWAY, terminate, waitForState } from '../support/sandboxes';
import { until } from '../support/until';

const STATES = ['PROVISIONING', 'RUNNING', 'SUSPENDING', 'SUSPENDED', 'RESUMING', 'TERMINATING', 'RECONCILING'];

describe('The metrics of sandboxes', function () {
  this.timeout(90_000);
  let gateway: TestGateway;

  before(async () => {
    gateway = await startGateway(SANDBOX_GATEWAY);
  });
  after(async () => {
    await gateway?.stop();
  });

  /** What the metrics say when `state` has so many, and no other state has any but those. */
  const shown = (wanted: Readonly<Record<string, number>>) =>
    until(`the metrics show ${JSON.stringify(wanted)}`, async () => {
      const metrics = await readMetrics(gateway);
      const counts = STATES.map((state) => metrics.get(`tollgate_sandboxes{state="${state}"}`));
      return counts.every((count, at) => count === (wanted[STATES[at] ?? ''] ?? 0)) ? metrics : undefined;
    });

  it('count, by state, the sandboxes that have not ended, and show the money that is held for them', async () => {
    const { key } = await gateway.newCustomer('10');
    await shown({});
    const one = await running(gateway, key, 'running');
    const suspended = await running(gateway, key, 'suspended');
    await gateway.call(`/v1/sandboxes/${suspended.id}/suspend`, { key });
    await waitForState(gateway, key, suspended.id, 'SUSPENDED');
    const { heldUsd } = await gateway.balance(key);
    const metrics = await shown({ RUNNING: 1, SUSPENDED: 1 });
    expect(Number(heldUsd)).to.be.above(0);
    expect(metrics.get('tollgate_sandbox_held_usd')).to.equal(Number(heldUsd));
    expect(metrics.get('tollgate_ledger_held_usd')).to.equal(0);
    expect([...metrics.keys()].filter((name) => name.startsWith('tollgate_sandboxes{'))).to.have.lengthOf(
      STATES.length,
    );
    for (const { id } of [one, suspended]) await terminate(gateway, key, id);
    expect((await shown({})).get('tollgate_sandbox_held_usd')).to.equal(0);
  });
});
