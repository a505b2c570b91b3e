import { strict as assert } from 'node:assert';
import type { Knex } from 'knex';
import { startGateway, type TestGateway } from '../support/gateway';
import {
  assertBooksAreClosed,
  assertRefused,
  running,
  SANDBOX_GATEWAY,
  terminate,
  waitForState,
} from '../support/sandboxes';
import { emptyRedis } from '../support/shared';
import { databaseOf } from '../support/stores';
import { until } from '../support/until';

describe('A sandbox whose worker or ledger fails', function () {
  this.timeout(90_000);
  let gateway: TestGateway;
  let database: Knex;
  before(async () => {
    gateway = await startGateway({ stores: 'real', ...SANDBOX_GATEWAY });
    database = await databaseOf(gateway.stores);
  });
  after(async () => {
    await database?.destroy();
    await gateway?.stop();
  });

  const ask = (key: string, id: string, verb: string, options: object = {}) =>
    gateway.call(`/v1/sandboxes/${id}/${verb}`, { key, ...options });

  /** Gives the sandbox to a worker that does nothing, so that its previous worker loses it. */
  async function hold(id: string): Promise<void> {
    const lease = { lease_epoch: database.raw('lease_epoch + 1'), lease_until: new Date(Date.now() + 600_000) };
    await database('sandboxes').where({ id }).update(lease);
  }

  it('runs one change at a time: another change gets 409, a repetition gets the same operation, a termination cancels it', async () => {
    const { key } = await gateway.newCustomer('10');
    const { id, stateVersion } = await running(gateway, key, 'busy', { policy: { resumeOnAccess: true } });
    await hold(id);
    const suspend = await ask(key, id, 'suspend');
    assert.equal(suspend.status, 202, suspend.text);
    assert.equal((await ask(key, id, 'suspend')).json.id, suspend.json.id);
    const resume = await ask(key, id, 'resume');
    assertRefused(resume, 409, 'STATE_CHANGE_IN_PROGRESS');
    assert.ok(Number(resume.headers['retry-after']) >= 1);
    // A command that comes meanwhile waits for the resume, and is answered when the sandbox ends instead.
    const command = gateway.call(`/v1/sandboxes/${id}/commands`, { key, body: { command: ':' } });
    const stale = { headers: { 'if-match': `"${stateVersion}"` } };
    assertRefused(await ask(key, id, 'terminate', stale), 412, 'PRECONDITION_FAILED');
    const ending = await ask(key, id, 'terminate');
    assert.equal(ending.status, 202, ending.text);
    assertRefused(await command, 409, 'SANDBOX_NOT_RUNNING');
    assertRefused(await ask(key, id, 'resume'), 409, 'STATE_CHANGE_IN_PROGRESS');
    await database('sandboxes').where({ id }).update({ lease_until: null });
    const ended = await waitForState(gateway, key, id, 'TERMINATED');
    assertBooksAreClosed(ended);
    assert.deepEqual(
      ended.operations.map(({ type, status }: { type: string; status: string }) => `${type} ${status}`),
      ['CREATE SUCCEEDED', 'SUSPEND CANCELLED', 'TERMINATE SUCCEEDED'],
    );
  });

  it('accepts only one of several changes that name the same version in If-Match', async () => {
    const { key } = await gateway.newCustomer('10');
    for (const name of ['first', 'second', 'third']) {
      const { id, stateVersion } = await running(gateway, key, name);
      await hold(id);
      const match = { headers: { 'if-match': `"${stateVersion}"` } };
      const verbs = ['suspend', 'terminate', 'suspend', 'terminate'];
      const statuses = (await Promise.all(verbs.map((verb) => ask(key, id, verb, match)))).map(({ status }) => status);
      assert.deepEqual([...statuses].sort(), [202, 412, 412, 412]);
      await database('sandboxes').where({ id }).update({ lease_until: null });
      assertBooksAreClosed(await terminate(gateway, key, id));
    }
  });

  it('keeps its hold if Redis loses the whole ledger, and is then billed exactly', async () => {
    const { key } = await gateway.newCustomer('10');
    const { id } = await running(gateway, key, 'survivor');
    await until('its credit is in the database', async () => {
      const { json } = await gateway.admin('GET', '/admin/v1/ledger/verify');
      return json.items?.length === 0;
    });
    const before = await gateway.balance(key);
    assert.equal(before.heldUsd, '0.66000000');
    await emptyRedis();
    await until(
      'the ledger is filled again',
      async () => (await gateway.balance(key)).balanceUsd === before.balanceUsd,
      30_000,
    );
    assert.deepEqual(await gateway.balance(key), before);
    const ended = await terminate(gateway, key, id);
    assertBooksAreClosed(ended);
    assert.ok(Number(ended.totalCost) > 0);
    assert.equal((await gateway.balance(key)).heldUsd, '0.00000000');
  });
});
