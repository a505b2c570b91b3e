import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import { ask } from '../support/calls';
import { type Answered, startGateway, type TestGateway } from '../support/gateway';
import { until } from '../support/until';
import { messagesAnswer, startUpstream, type TestUpstream } from '../support/upstream';

describe('An API key on two nodes that hold money in advance', function () {
  this.timeout(120_000);
  let upstream: TestUpstream;
  let one: TestGateway;
  let other: TestGateway;
  before(async () => {
    upstream = await startUpstream();
    upstream.always(messagesAnswer());
    const system = { ledger: { allowances: true }, keys: { requestsPerMinute: 600 } };
    const options = { upstreams: { one: { url: upstream.url } }, system };
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

  /** Does this so often at once, at both nodes in turn. */
  const times = (count: number, action: (node: TestGateway) => Promise<Answered>) =>
    Promise.all(Array.from({ length: count }, (_, index) => action(index % 2 === 0 ? one : other)));

  /** Calls until both nodes have money of the key in advance. */
  async function warm(key: string, calls = 100) {
    await Promise.all([one, other].flatMap((node) => Array.from({ length: calls }, () => codeOf(node, key))));
  }

  it('is refused at both nodes once a change of its addresses, expiry or secret that rules it out is confirmed', async () => {
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

  it('is refused at both nodes once the removal of its member is answered, and those of other members are not', async () => {
    const { accountId, key: first, keyId } = await one.newCustomer('100');
    const { key: others } = (await one.admin('POST', `/admin/v1/accounts/${accountId}/keys`, { name: 'another' })).json;
    const person = { email: `${keyId}@example.com`, password: 'correct horse battery', role: 'member' };
    const { json: member } = await one.admin('POST', `/admin/v1/accounts/${accountId}/users`, person);
    await one.admin('PATCH', `/admin/v1/keys/${keyId}`, { memberId: member.id });
    await warm(first, 20);
    await until('the removal is answered', async () => {
      const { status } = await other.admin('DELETE', `/admin/v1/users/${member.id}`);
      return status === 200 || undefined;
    });
    assert.deepEqual(await everywhere(first), ['401 INVALID_API_KEY', '401 INVALID_API_KEY']);
    await until('both take the other key', async () => (await everywhere(others)).every((code) => code === '200'));
  });

  it('can be created or rotated 200 times a day at once and then 60 times an hour, at both nodes together', async () => {
    const { accountId, keyId } = await one.newCustomer('1');
    const make = (node: TestGateway) => node.admin('POST', `/admin/v1/accounts/${accountId}/keys`, { name: 'more' });
    const rotate = (node: TestGateway) => node.admin('POST', `/admin/v1/keys/${keyId}/rotate`, { graceSeconds: 60 });
    const allMade = (answers: readonly Answered[]) =>
      assert.deepEqual([...new Set(answers.map(({ status }) => status))], [201]);
    // The customer's first key counts, too.
    allMade(await times(139, make));
    allMade(await times(2, rotate));
    const redis = new Redis(redisUrlOf(one));
    const before = await redis.dbsize();
    allMade(await times(118, rotate));
    const refused = await times(1_000, (node) => (Math.random() < 0.5 ? make(node) : rotate(node)));
    for (const { status, json, headers } of refused) {
      assert.deepEqual([status, json.error.code], [429, 'RATE_LIMITED']);
      const seconds = Number(headers['retry-after']);
      assert(seconds > 3_000 && seconds <= 3_600, `Retry-After: ${seconds}`);
      assert.match(json.error.message, /raise `keys.madePerHour`/);
    }
    assert.equal(await redis.dbsize(), before, 'secrets before the last one leave nothing behind');
    await redis.quit();
    assert.equal((await one.admin('GET', `/admin/v1/accounts/${accountId}/keys?limit=200`)).json.items.length, 140);
    const { key } = await one.newCustomer('1');
    assert.deepEqual(await everywhere(key), ['200', '200'], 'other accounts make keys');
  });

  it("can send 600 requests a minute to the gateway's own API, at both nodes together", async () => {
    const { key } = await one.newCustomer('1');
    const startedMs = performance.now();
    const answers: Answered[] = [];
    for (let batch = 0; batch < 50; batch += 1)
      answers.push(...(await times(20, (node) => node.call('/v1/balance', { method: 'GET', key }))));
    const passedSeconds = (performance.now() - startedMs) / 1_000;
    const count = (wanted: number) => answers.filter(({ status }) => status === wanted).length;
    assert(count(200) <= 600 + 10 * passedSeconds + 1, `${count(200)} in ${passedSeconds} s`);
    // On a busy machine Redis may be late, and a request that it has counted gets 503.
    assert(count(200) + count(503) >= 600, `${count(200)} answered`);
    assert(count(429) > 0, `none of ${answers.length} refused in ${passedSeconds} s`);
    for (const { json, headers } of answers.filter(({ status }) => status === 429)) {
      assert.deepEqual([json.error.code, headers['retry-after']], ['KEY_RATE_LIMITED', '1']);
      assert.match(json.error.message, /600 requests to this API within a minute/);
    }
    assert.deepEqual(await everywhere(key), ['200', '200'], 'model calls are not counted');
    const { key: colleague } = await one.newCustomer('1');
    assert.equal((await other.call('/v1/balance', { method: 'GET', key: colleague })).status, 200);
  });

  it('leaves no index entry in Redis after it is revoked, or for a secret whose grace period ended a day ago', async () => {
    const { keyId, accountId } = await one.newCustomer('1');
    const redis = new Redis(redisUrlOf(one));
    const entries = async () => {
      const found: string[] = [];
      for (const entry of await redis.keys('key:*'))
        if ((await redis.get(entry)) === `${accountId} ${keyId}`) found.push(entry);
      return found;
    };
    assert.equal((await entries()).length, 1);
    await one.admin('POST', `/admin/v1/keys/${keyId}/rotate`, { graceSeconds: 3_600 });
    const lives = await Promise.all((await entries()).map((entry) => redis.pttl(entry)));
    lives.sort((a, b) => a - b);
    assert.equal(lives[0], -1, 'the current secret stays');
    assert((lives[1] ?? 0) > 24 * 3_600_000 && (lives[1] ?? 0) <= 25 * 3_600_000, `expires in ${lives[1]} ms`);
    await one.admin('DELETE', `/admin/v1/keys/${keyId}`);
    assert.deepEqual(await entries(), []);
    await redis.quit();
  });

  it('keeps its secrets and allowed addresses after Redis was emptied', async () => {
    const { key: old, keyId } = await one.newCustomer('100', { allowedAddresses: ['127.0.0.1'] });
    const fresh = (await one.admin('POST', `/admin/v1/keys/${keyId}/rotate`, { graceSeconds: 3_600 })).json.key;
    const barred = await one.newCustomer('100', { allowedAddresses: ['192.0.2.1'] });
    assert.deepEqual(await everywhere(old), ['200', '200']);
    const redis = new Redis(redisUrlOf(one));
    await redis.flushall();
    await redis.quit();
    const third = await startGateway({ stores: one.stores, upstreams: { one: { url: upstream.url } } });
    await until('the ledger is filled again', async () => (await codeOf(third, fresh)) === '200');
    assert.equal(await codeOf(third, old), '200');
    assert.equal(await codeOf(third, barred.key), '403 ADDRESS_NOT_ALLOWED');
    await third.stop();
  });
});

function redisUrlOf({ stores }: TestGateway): string {
  if (!('redisUrl' in stores)) throw new Error('the stores are real');
  return stores.redisUrl;
}
