import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import { ask } from '../support/calls';
import { startGateway, type TestGateway } from '../support/gateway';
import { until } from '../support/until';
import { messagesAnswer, startUpstream, type TestUpstream } from '../support/upstream';

describe('An API key on two nodes with money in advance', function () {
  this.timeout(120_000);
  let upstream: TestUpstream;
  let one: TestGateway;
  let other: TestGateway;
  before(async () => {
    upstream = await startUpstream();
    upstream.always(messagesAnswer());
    const options = { upstreams: { one: { url: upstream.url } }, system: { ledger: { allowances: true } } };
    one = await startGateway({ stores: 'real', ...options });
    other = await startGateway({ stores: one.stores, ...options });
  });
  after(async () => {
    await one.stop();
    await other.stop();
    await upstream.stop();
  });

  const codeOf = async (node: TestGateway, key: string) => {
    const { status, json } = await node.call('/v1/messages', { key, body: ask() });
    return status === 200 ? '200' : `${status} ${json.error.code}`;
  };
  const everywhere = async (key: string) => [await codeOf(one, key), await codeOf(other, key)];

  /** Calls until both nodes have money of the key in advance. */
  async function warm(key: string) {
    await Promise.all([one, other].flatMap((node) => Array.from({ length: 100 }, () => codeOf(node, key))));
  }

  it('is refused on both as soon as a change of its addresses, expiry or secret was answered', async () => {
    const { key: first, keyId } = await one.newCustomer('100');
    await warm(first);
    const fresh = (await other.admin('POST', `/admin/v1/keys/${keyId}/rotate`, { graceSeconds: 0 })).json.key;
    assert.deepEqual(await everywhere(first), ['401 API_KEY_EXPIRED', '401 API_KEY_EXPIRED']);
    await warm(fresh);
    assert.deepEqual(await everywhere(fresh), ['200', '200']);
    assert.deepEqual(await everywhere(first), ['401 API_KEY_EXPIRED', '401 API_KEY_EXPIRED']);

    await one.admin('PATCH', `/admin/v1/keys/${keyId}`, { allowedAddresses: ['192.0.2.1'] });
    assert.deepEqual(await everywhere(fresh), ['403 ADDRESS_NOT_ALLOWED', '403 ADDRESS_NOT_ALLOWED']);
    await one.admin('PATCH', `/admin/v1/keys/${keyId}`, { allowedAddresses: null });
    await until('both take it again', async () => (await everywhere(fresh)).every((code) => code === '200'));

    await warm(fresh);
    const expiresAt = new Date(Date.now() + 500).toISOString();
    await other.admin('PATCH', `/admin/v1/keys/${keyId}`, { expiresAt });
    const isExpired = (code: string) => code === '401 API_KEY_EXPIRED';
    await until('both refuse it', async () => (await everywhere(fresh)).every(isExpired));
  });

  it('keeps its secrets and allowed addresses after Redis was emptied', async () => {
    const { key: old, keyId } = await one.newCustomer('100', { allowedAddresses: ['127.0.0.1'] });
    const fresh = (await one.admin('POST', `/admin/v1/keys/${keyId}/rotate`, { graceSeconds: 3_600 })).json.key;
    const barred = await one.newCustomer('100', { allowedAddresses: ['192.0.2.1'] });
    assert.deepEqual(await everywhere(old), ['200', '200']);
    if (!('redisUrl' in one.stores)) throw new Error('the stores are real');
    const redis = new Redis(one.stores.redisUrl);
    await redis.flushall();
    await redis.quit();
    const third = await startGateway({ stores: one.stores, upstreams: { one: { url: upstream.url } } });
    await until('the ledger is filled again', async () => (await codeOf(third, fresh)) === '200');
    assert.equal(await codeOf(third, old), '200');
    assert.equal(await codeOf(third, barred.key), '403 ADDRESS_NOT_ALLOWED');
    await third.stop();
  });
});
