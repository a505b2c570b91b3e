import assert from 'node:assert/strict';
import { Agent, request } from 'undici';
import { ask } from '../support/calls';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer, messagesStream } from '../support/upstream';

const PROXY = '127.0.0.9';

describe('An API key', function () {
  this.timeout(120_000);
  const upstream = useUpstream();
  const gateway = useGateway(() => ({
    upstreams: { one: { url: upstream.url } },
    system: { proxies: { count: 1, addresses: [PROXY] } },
  }));
  beforeEach(() => {
    upstream.reset();
    upstream.always(messagesAnswer());
  });

  const call = (key: string, headers: Record<string, string> = {}) =>
    gateway.call('/v1/messages', { key, headers, body: ask() });
  const codeOf = async (key: string) => {
    const { status, json } = await call(key);
    return status === 200 ? '200' : `${status} ${json.error.code}`;
  };
  const change = async (keyId: string, body: object) => {
    const answer = await gateway.admin('PATCH', `/admin/v1/keys/${keyId}`, body);
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  };
  const rotate = (keyId: string, graceSeconds: number) =>
    gateway.admin('POST', `/admin/v1/keys/${keyId}/rotate`, { graceSeconds });
  const rotated = async (keyId: string, graceSeconds: number): Promise<string> => {
    const answer = await rotate(keyId, graceSeconds);
    assert.equal(answer.status, 201, answer.text);
    return answer.json.key;
  };
  const soon = (ms: number) => new Date(Date.now() + ms).toISOString();

  /** Sends a call from an address of this machine. */
  async function callFrom(localAddress: string, key: string, forwarded?: string) {
    const dispatcher = new Agent({ localAddress });
    const answer = await request(`${gateway.url}/v1/messages`, {
      dispatcher,
      method: 'POST',
      headers: {
        'x-api-key': key,
        'content-type': 'application/json',
        ...(forwarded !== undefined && { 'x-forwarded-for': forwarded }),
      },
      body: JSON.stringify(ask()),
    });
    const json = (await answer.body.json()) as { error?: { code: string; message: string } };
    await dispatcher.close();
    return { status: answer.statusCode, error: json.error };
  }

  describe('that expires', () => {
    it('is refused by all routes once it has expired, and accepted again after its expiry is moved later', async () => {
      const expiresAt = soon(1_500);
      const { key, keyId } = await gateway.newCustomer('1', { expiresAt });
      assert.equal(await codeOf(key), '200');
      await until('it has expired', async () => (await codeOf(key)) === '401 API_KEY_EXPIRED');
      assert.ok(Date.now() >= Date.parse(expiresAt));
      const refused = await call(key);
      assert.equal(refused.json.error.message, `The API key expired at ${expiresAt}. Use a valid key.`);
      assert.equal((await gateway.call('/v1/balance', { method: 'GET', key })).status, 401);
      assert.equal((await gateway.call('/v1/models', { method: 'GET', key })).status, 401);
      await change(keyId, { expiresAt: soon(60_000) });
      await until('it works again', async () => (await codeOf(key)) === '200');
      await change(keyId, { expiresAt: null });
      assert.equal(await codeOf(key), '200');
    });

    it('is refused from a new, earlier expiry on, even by a node that has already served it', async () => {
      const { key, keyId } = await gateway.newCustomer('1');
      assert.equal(await codeOf(key), '200');
      await change(keyId, { expiresAt: soon(300) });
      await until('it has expired', async () => (await codeOf(key)) === '401 API_KEY_EXPIRED');
    });

    it('finishes a stream that began before the key expired, and is charged for it', async () => {
      const { key } = await gateway.newCustomer('1', { expiresAt: soon(1_500) });
      let proceed = () => {};
      const isExpired = new Promise<void>((resolve) => {
        proceed = resolve;
      });
      upstream.next(messagesStream({ texts: ['one ', 'two '], waitFor: { before: 4, until: isExpired } }));
      const streaming = gateway.call('/v1/messages', { key, body: ask({ stream: true }) });
      await until('the stream has begun', () => upstream.calls.length === 1);
      await until('it has expired', async () => (await codeOf(key)) === '401 API_KEY_EXPIRED');
      proceed();
      const streamed = await streaming;
      assert.equal(streamed.status, 200);
      assert.match(streamed.text, /event: message_stop/);
      const requestId = String(streamed.headers['x-svc-request-id']);
      const record = await until('it is recorded', async () => {
        const answer = await gateway.admin('GET', `/admin/v1/usage/${requestId}`);
        return answer.status === 200 && answer.json;
      });
      assert.equal(record.cost, '0.00010500');
    });
  });

  describe('with allowed addresses', () => {
    const allowedAddresses = ['127.0.0.2', '198.51.100.0/24', '2001:db8::/32'];

    it("is accepted only from the key's allowed addresses", async () => {
      const { key } = await gateway.newCustomer('1', { allowedAddresses });
      const refused = await callFrom('127.0.0.3', key);
      assert.deepEqual([refused.status, refused.error?.code], [403, 'ADDRESS_NOT_ALLOWED']);
      assert.match(refused.error?.message ?? '', /from 127\.0\.0\.3\./);
      assert.equal((await callFrom('127.0.0.2', key)).status, 200);
      // The node now has the key's settings in memory.
      assert.equal((await callFrom('127.0.0.3', key)).status, 403);
      assert.equal((await callFrom('127.0.0.2', key)).status, 200);
    });

    it('is checked against the address that a trusted proxy adds to X-Forwarded-For, and no other address', async () => {
      const { key } = await gateway.newCustomer('1', { allowedAddresses });
      for (const [from, forwarded, status] of [
        [PROXY, '198.51.100.7', 200],
        [PROXY, '2001:db8::7', 200],
        [PROXY, '::ffff:198.51.100.7', 200],
        [PROXY, '192.0.2.7', 403],
        [PROXY, '198.51.100.7, 192.0.2.7', 403],
        ['127.0.0.3', '198.51.100.7', 403],
        ['127.0.0.3', '127.0.0.2', 403],
      ] as const)
        assert.equal((await callFrom(from, key, forwarded)).status, status, `${from}: ${forwarded}`);
    });

    it("is refused with 400 if the proxy does not send the client's address", async () => {
      const { key } = await gateway.newCustomer('1', { allowedAddresses: [PROXY, ...allowedAddresses] });
      for (const forwarded of [undefined, 'unknown', '198.51.100.7, ']) {
        const { status, error } = await callFrom(PROXY, key, forwarded);
        assert.deepEqual([status, error?.code], [400, 'INVALID_FIELD'], forwarded);
        assert.match(error?.message ?? '', /^X-Forwarded-For: expected an address from each proxy/);
      }
      assert.equal((await callFrom(PROXY, (await gateway.newCustomer('1')).key)).status, 200);
      assert.equal(upstream.calls.length, 1);
    });

    it('is not created with an invalid address, and the error names it', async () => {
      const { accountId } = await gateway.newCustomer('0');
      const wanted = { name: 'wrong', allowedAddresses: ['127.0.0.1', '010.0.0.0/8'] };
      const answer = await gateway.admin('POST', `/admin/v1/accounts/${accountId}/keys`, wanted);
      assert.deepEqual([answer.status, answer.json.error.param], [400, 'allowedAddresses[1]']);
    });
  });

  describe('that is rotated', () => {
    it('has two secrets until the grace period ends, which share spending and limit', async () => {
      const { key: old, keyId } = await gateway.newCustomer('1', { balanceLimit: '0.00031500' });
      await change(keyId, { balanceLimit: '0.5' });
      assert.equal(await codeOf(old), '200');
      const fresh = await rotated(keyId, 2);
      assert.equal(await codeOf(old), '200');
      assert.equal(await codeOf(fresh), '200');
      assert.equal((await gateway.balance(fresh)).key['spentUsd'], '0.00031500');
      assert.deepEqual(await gateway.balance(old), await gateway.balance(fresh));
      await until('the grace has ended', async () => (await codeOf(old)) === '401 API_KEY_EXPIRED');
      assert.match((await call(old)).json.error.message, /secret of the API key was replaced, and it expired at/);
      assert.equal(await codeOf(fresh), '200');
    });

    it('loses the previous secret at once without a grace period, and an even older secret with every rotation', async () => {
      const { key: first, keyId } = await gateway.newCustomer('1');
      assert.equal(await codeOf(first), '200');
      const second = await rotated(keyId, 3_600);
      assert.equal(await codeOf(first), '200');
      const third = await rotated(keyId, 3_600);
      assert.equal(await codeOf(first), '401 INVALID_API_KEY');
      assert.deepEqual([await codeOf(second), await codeOf(third)], ['200', '200']);
      const fourth = await rotated(keyId, 0);
      assert.equal(await codeOf(third), '401 API_KEY_EXPIRED');
      assert.equal(await codeOf(second), '401 INVALID_API_KEY');
      assert.equal(await codeOf(fourth), '200');
    });

    it('loses both secrets if it is revoked or expires in the grace period, and then cannot be rotated', async () => {
      const { key: old, keyId } = await gateway.newCustomer('1');
      const fresh = await rotated(keyId, 3_600);
      assert.deepEqual([await codeOf(old), await codeOf(fresh)], ['200', '200']);
      await gateway.admin('DELETE', `/admin/v1/keys/${keyId}`);
      assert.deepEqual([await codeOf(old), await codeOf(fresh)], ['401 INVALID_API_KEY', '401 INVALID_API_KEY']);
      assert.equal((await rotate(keyId, 0)).json.error.code, 'CONFLICT');

      const expiring = await gateway.newCustomer('1', { expiresAt: soon(1_500) });
      const other = await rotated(expiring.keyId, 3_600);
      await until('it has expired', async () => (await codeOf(other)) === '401 API_KEY_EXPIRED');
      assert.equal(await codeOf(expiring.key), '401 API_KEY_EXPIRED');
      assert.equal((await rotate(expiring.keyId, 0)).json.error.code, 'CONFLICT');
    });

    it('shows the new secret once, and neither lists nor audit log contain it', async () => {
      const { accountId, keyId } = await gateway.newCustomer('0');
      const fresh = await rotated(keyId, 60);
      const listed = await gateway.admin('GET', `/admin/v1/accounts/${accountId}/keys`);
      assert.equal(listed.json.items[0].suffix, fresh.slice(-4));
      assert.ok(Date.parse(listed.json.items[0].previousSecretUntil) > Date.now());
      const audit = await gateway.admin('GET', `/admin/v1/audit?subject=key:${keyId}`);
      assert.equal(audit.json.items[0].action, 'key.rotate');
      for (const { text } of [listed, audit]) assert.ok(!text.includes(fresh.slice(11, -4)));
    });
  });
});
