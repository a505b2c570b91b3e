import { strict as assert } from 'node:assert';
import { Redis } from 'ioredis';
import type { Knex } from 'knex';
import { newId } from '../../core/base/ids';
import { forgetQuotes } from '../../plugins/sandbox/store/quotes';
import { asDocumented } from '../support/documents';
import { type Answered, startGateway, type TestGateway } from '../support/gateway';
import {
  assertBooksAreClosed,
  assertRefused,
  createSandbox,
  creation,
  SANDBOX_GATEWAY,
  SMALL_ID,
  terminate,
} from '../support/sandboxes';
import { databaseOf, realStores } from '../support/stores';
import { until } from '../support/until';

describe('The creation of a sandbox', function () {
  this.timeout(90_000);
  let gateway: TestGateway;
  let database: Knex;
  let redis: Redis;
  before(async () => {
    const stores = await realStores();
    gateway = await asDocumented(await startGateway({ ...SANDBOX_GATEWAY, stores }));
    database = await databaseOf(stores);
    redis = new Redis(stores.redisUrl);
  });
  after(async () => {
    redis?.disconnect();
    await database?.destroy();
    await gateway?.stop();
  });

  const post = (key: string, body: unknown): Promise<Answered> => gateway.call('/v1/sandboxes', { key, body });

  it('gets 503 while the ledger answers late, and a repetition of the request uses the hold of the first request', async () => {
    const { key, accountId } = await gateway.newCustomer('5');
    await gateway.call('/v1/offerings', { method: 'GET', key });
    await redis.client('PAUSE', 5_000, 'WRITE');
    const late = await post(key, creation('late'));
    assertRefused(late, 503, 'LEDGER_UNAVAILABLE');
    assert.equal(late.headers['retry-after'], '1');
    await redis.client('UNPAUSE');
    await until('what was asked is held', async () => (await gateway.balance(key)).heldUsd === '0.66000000');
    const made = await createSandbox(gateway, key, creation('late'));
    assert.equal((await database('sandboxes').where({ account_id: accountId })).length, 1);
    assert.equal((await gateway.balance(key)).heldUsd, '0.66000000');
    assertBooksAreClosed(await terminate(gateway, key, made.id));
  });

  it('is refused if its quote has expired or the offering has changed', async () => {
    const { key } = await gateway.newCustomer('10');
    const quote = async () => (await gateway.call('/v1/quotes', { key, body: { offeringId: SMALL_ID } })).json.quoteId;
    const expired = await quote();
    await database('quotes')
      .where({ id: expired })
      .update({ expires_at: new Date(Date.now() - 1) });
    assertRefused(await post(key, creation('late', { selection: { quoteId: expired } })), 400, 'QUOTE_EXPIRED');
    const changed = await quote();
    await database('quotes').where({ id: changed }).update({ offering_revision: 'another' });
    assertRefused(await post(key, creation('late', { selection: { quoteId: changed } })), 409, 'OFFERING_CHANGED');
  });

  it('leaves no quote in the database an hour after the quote has expired', async () => {
    const { key, accountId } = await gateway.newCustomer('1');
    const quotes = () => database('quotes').where({ account_id: accountId });
    await gateway.call('/v1/quotes', { key, body: { offeringId: SMALL_ID } });
    await quotes().update({ used_by: newId() });
    await forgetQuotes(database, Date.now() + 3_600_000);
    assert.equal((await quotes()).length, 1, 'it has not expired an hour ago');
    await quotes().update({ expires_at: new Date(Date.now() - 3_600_001) });
    await forgetQuotes(database, Date.now());
    assert.equal((await quotes()).length, 0);
  });

  it('is refused above the limit of active sandboxes or of creations, and the limits of other accounts stay the same', async () => {
    const { key, accountId } = await gateway.newCustomer('100');
    const made = await createSandbox(gateway, key, creation('first'));
    const [row] = await database('sandboxes').where({ id: made.id });
    const copies = Array.from({ length: 19 }, (_, index) => ({
      ...Object.fromEntries(Object.entries(row).map(([name, value]) => [name, toColumn(value)])),
      id: `019a9d5e-3c5c-7a52-8f7e-${String(index).padStart(12, '0')}`,
      idempotency_key: `copy ${index}`,
      next_at: new Date(Date.now() + 3_600_000),
    }));
    await database('sandboxes').insert(copies);
    assertRefused(await post(key, creation('twenty-first')), 409, 'ACTIVE_INSTANCE_LIMIT');
    await database('sandboxes')
      .whereIn(
        'id',
        copies.map(({ id }) => id),
      )
      .delete();
    await database('account_rates').where({ account_id: accountId, action: 'sandbox' }).update({ made: 60 });
    const fast = await post(key, creation('too-fast'));
    assertRefused(fast, 429, 'RATE_LIMITED');
    assert.ok(Number(fast.headers['retry-after']) >= 1);
    assert.equal((await createSandbox(gateway, key, creation('first'))).id, made.id);

    const other = await gateway.newCustomer('5');
    for (const path of ['', '/audit', '/operations/019a9d5e-3c5c-7a52-8f7e-0d4f6a1b2c3d']) {
      const answer = await gateway.call(`/v1/sandboxes/${made.id}${path}`, { method: 'GET', key: other.key });
      assertRefused(answer, 404, 'SANDBOX_NOT_FOUND');
    }
    assertRefused(
      await gateway.call(`/v1/sandboxes/${made.id}/terminate`, { key: other.key }),
      404,
      'SANDBOX_NOT_FOUND',
    );
    const list = await gateway.call('/v1/sandboxes', { method: 'GET', key: other.key });
    assert.deepEqual(list.json, { items: [], nextCursor: null, total: 0 });
    await terminate(gateway, key, made.id);
  });

  it('is cancelled if it stays unfinished: its hold is released, and its idempotency key can be used again', async () => {
    const { key, accountId } = await gateway.newCustomer('10');
    const made = await createSandbox(gateway, key, creation('finished'));
    const long = new Date(Date.now() - 120_000);
    await terminate(gateway, key, made.id);
    const [row] = await database('sandboxes').where({ id: made.id });
    const stale = '019a9d5e-3c5c-7a52-8f7e-ffffffffffff';
    await database('sandboxes').insert({
      ...Object.fromEntries(Object.entries(row).map(([name, value]) => [name, toColumn(value)])),
      id: stale,
      idempotency_key: 'stale',
      admission: 'PENDING',
      observed_state: 'PROVISIONING',
      created_at: long,
    });
    const [period] = await database('billing_periods').where({ sandbox_id: made.id });
    await database('billing_periods').insert({
      ...period,
      id: stale,
      sandbox_id: stale,
      hold_id: stale,
      status: 'OPEN',
      settled_at: null,
    });
    const deadline = Date.now() + 30_000;
    while ((await database('sandboxes').where({ id: stale })).length > 0 && Date.now() < deadline) {
      await new Promise((wake) => setTimeout(wake, 100));
    }
    assert.deepEqual(await database('sandboxes').where({ account_id: accountId, idempotency_key: 'stale' }), []);
    const next = await createSandbox(gateway, key, creation('stale'));
    assertBooksAreClosed(await terminate(gateway, key, next.id));
  });
});

/** Returns a value that was read in the form in which it can be written. */
function toColumn(value: unknown): unknown {
  return value !== null && typeof value === 'object' && !(value instanceof Date) ? JSON.stringify(value) : value;
}
