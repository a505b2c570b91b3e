import { strict as assert } from 'node:assert';
import { asDocumented } from '../support/documents';
import { startGateway, type TestGateway } from '../support/gateway';
import {
  assertBooksAreClosed,
  createSandbox,
  creation,
  SANDBOX_GATEWAY,
  SMALL_ID,
  terminate,
  units,
  waitForState,
} from '../support/sandboxes';

describe('A sandbox', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await asDocumented(await startGateway(SANDBOX_GATEWAY));
  });
  after(() => gateway.stop());

  it('can be quoted, created, suspended, resumed and terminated, and its bill is the sum of its segments', async () => {
    const { key } = await gateway.newCustomer('10');
    const quote = await gateway.call('/v1/quotes', { key, body: { requirements: { capabilities: ['exec'] } } });
    assert.equal(quote.status, 201, quote.text);
    assert.equal(quote.json.estimatedHourlyUsd, '3.60000000');
    // The hold covers ten minutes in advance and one for the end.
    assert.equal(quote.json.initialReservationUsd, '0.66000000');

    const body = creation('journey', { selection: { quoteId: quote.json.quoteId }, metadata: { order: 7 } });
    const made = await createSandbox(gateway, key, body);
    assert.equal(made.offeringId, SMALL_ID);
    assert.equal(made.observedState, 'PROVISIONING');
    assert.equal(made.totalCost, '0.00000000');
    assert.equal((await gateway.balance(key)).heldUsd, '0.66000000');

    const running = await waitForState(gateway, key, made.id, 'RUNNING');
    assert.equal(running.lifecyclePhase, 'RUNNING');
    assert.equal(running.usageSegments.length, 1);
    const suspend = await gateway.call(`/v1/sandboxes/${made.id}/suspend`, { key });
    assert.equal(suspend.status, 202, suspend.text);
    await waitForState(gateway, key, made.id, 'SUSPENDED');
    assert.equal((await gateway.call(`/v1/sandboxes/${made.id}/suspend`, { key })).json.noop, true);
    assert.equal((await gateway.call(`/v1/sandboxes/${made.id}/resume`, { key })).status, 202);
    await waitForState(gateway, key, made.id, 'RUNNING');

    const ended = await terminate(gateway, key, made.id);
    assertBooksAreClosed(ended);
    assert.equal(ended.observedState, 'TERMINATED');
    assert.deepEqual(
      ended.usageSegments.map(({ state }: { state: string }) => state),
      ['RUNNING', 'SUSPENDED', 'RUNNING'],
    );
    assert.deepEqual(
      ended.operations.map(({ type, status }: { type: string; status: string }) => `${type} ${status}`),
      ['CREATE SUCCEEDED', 'SUSPEND SUCCEEDED', 'SUSPEND SUCCEEDED', 'RESUME SUCCEEDED', 'TERMINATE SUCCEEDED'],
    );
    const balance = await gateway.balance(key);
    assert.equal(balance.heldUsd, '0.00000000');
    assert.equal(units(balance.balanceUsd), 1_000_000_000n - units(ended.totalCost));
    assert.equal((await gateway.call(`/v1/sandboxes/${made.id}/terminate`, { key })).status, 200);
    assert.equal((await gateway.call(`/v1/sandboxes/${made.id}/resume`, { key })).status, 410);
  });
});
