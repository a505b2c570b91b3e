import { strict as assert } from 'node:assert';
import { startGateway, type TestGateway } from '../support/gateway';
import {
  type AnyRecord,
  assertBooksAreClosed,
  running,
  SANDBOX_GATEWAY,
  terminate,
  units,
  waitForState,
} from '../support/sandboxes';
import { emptyRedis, newDatabase } from '../support/shared';
import { until } from '../support/until';

/** The first hold at USD 3.6 an hour: three seconds in advance and one for the end. */
const HOLD = '0.00400000';
const TIMES = { holdAhead: '3s', renewBefore: '2s', endingReserve: '1s', maxPeriod: '4s', observeSteady: '500ms' };

describe('a running sandbox', function () {
  this.timeout(60_000);
  let gateway: TestGateway;
  before(async () => {
    const stores = { redisUrl: await emptyRedis(), databaseUrl: await newDatabase() };
    const plugins = { sandbox: { ...SANDBOX_GATEWAY.plugins.sandbox, ...TIMES } };
    gateway = await startGateway({ ...SANDBOX_GATEWAY, plugins, stores });
  });
  after(() => gateway?.stop());

  /** Asserts that the gateway ended the sandbox for lack of money, in time and without debt. */
  async function assertEndedUnpaid(key: string, id: string): Promise<AnyRecord> {
    const ended = await waitForState(gateway, key, id, 'TERMINATED,FAILED');
    assertBooksAreClosed(ended);
    assert.equal(ended.observedState, 'TERMINATED', JSON.stringify(ended.failure));
    const { cause } = ended.operations.find(({ type }: AnyRecord) => type === 'TERMINATE');
    assert.equal(cause, 'FUNDS_EXHAUSTED');
    for (const { endedAt, coversUntil } of ended.billingPeriods)
      assert.ok(Date.parse(endedAt) <= Date.parse(coversUntil) + 1_000, `${endedAt} ${coversUntil}`);
    for (const segment of ended.usageSegments)
      assert.equal(units(segment.amount), BigInt(Math.round(segment.seconds * 100_000)));
    return ended;
  }

  it('is ended before its money is used up if the balance equals its first hold, and the account keeps the rest', async () => {
    const { key } = await gateway.newCustomer(HOLD);
    const ended = await assertEndedUnpaid(key, (await running(gateway, key, 'one')).id);
    const { balanceUsd, heldUsd } = await gateway.balance(key);
    assert.equal(units(balanceUsd), units(HOLD) - units(ended.totalCost));
    assert.deepEqual([heldUsd, units(balanceUsd) >= 0n], ['0.00000000', true]);
  });

  it('is ended within its paid time if the spending limit of its API key is lowered, and the used time is charged', async () => {
    const { key, keyId } = await gateway.newCustomer('10', { balanceLimit: '1' });
    const id = (await running(gateway, key, 'one')).id;
    const lowered = await gateway.admin('PATCH', `/admin/v1/keys/${keyId}`, { balanceLimit: '0.0045' });
    assert.equal(lowered.status, 200, lowered.text);
    const ended = await assertEndedUnpaid(key, id);
    assert.ok(units(ended.totalCost) <= 450_000n, ended.totalCost);
    const { key: limits } = await gateway.balance(key);
    assert.equal(limits['spentUsd'], ended.totalCost);
  });

  it('is ended if its account is frozen, and is charged no more than was paid in advance', async () => {
    const { key, accountId } = await gateway.newCustomer('10');
    const id = (await running(gateway, key, 'one')).id;
    const seen = async () => (await gateway.admin('GET', `/admin/v1/sandboxes?account=${accountId}&state=ALL`)).json;
    await gateway.admin('POST', `/admin/v1/accounts/${accountId}/freeze`, {});
    await until('it has ended', async () => (await seen()).items[0].observedState === 'TERMINATED', 30_000);
    await gateway.admin('POST', `/admin/v1/accounts/${accountId}/unfreeze`, {});
    const ended = await assertEndedUnpaid(key, id);
    assert.equal(units((await gateway.balance(key)).balanceUsd), 1_000_000_000n - units(ended.totalCost));
  });

  it('continues after its API key was revoked, and every billing period is charged exactly', async () => {
    const { key, keyId, accountId } = await gateway.newCustomer('10');
    const other = await gateway.admin('POST', `/admin/v1/accounts/${accountId}/keys`, { name: 'other' });
    const id = (await running(gateway, key, 'one')).id;
    await gateway.admin('DELETE', `/admin/v1/keys/${keyId}`);
    const observer = other.json.key as string;
    const path = `/v1/sandboxes/${id}`;
    assert.equal((await gateway.call(path, { method: 'GET', key })).status, 401);
    await until(
      'a third period has begun',
      async () => (await gateway.call(path, { method: 'GET', key: observer })).json.auditCounts.billingPeriods >= 3,
      30_000,
    );
    const ended = await terminate(gateway, observer, id);
    assertBooksAreClosed(ended);
    const periods = ended.billingPeriods as AnyRecord[];
    for (const [index, { startedAt }] of periods.entries())
      if (index > 0) assert.equal(startedAt, periods[index - 1]?.endedAt);
    const { balanceUsd, heldUsd } = await gateway.balance(observer);
    assert.equal(units(balanceUsd), 1_000_000_000n - units(ended.totalCost));
    assert.equal(heldUsd, '0.00000000');
  });
});
