import { expect } from 'chai';
import { request } from 'undici';
import { ask, askIn, PATH, PROTOCOLS } from '../support/calls';
import { answerOf, failureOf } from '../support/dialects';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { after as afterMs, messagesAnswer, messagesStream } from '../support/upstream';

const USAGE = { input: 1_000, output: 200 };
/** The cost of that usage: 1,000 × 3 + 200 × 15 USD per million. */
const COST = '0.00600000';

const keyed = (key: string) => ({ 'idempotency-key': key });

describe('Idempotency-Key of model calls', () => {
  const upstream = useUpstream();

  const gateway = useGateway(() => ({
    upstreams: { acme: { url: upstream.url } },
    // The operator's prefix must not make the gateway forward the header.
    configure: (config) => {
      for (const { policies } of Object.values<{ policies: Record<string, unknown>[] }>(config['pipelines']))
        for (const policy of policies)
          if ('model-request' in policy)
            policy['model-request'] = [{ action: { forwardHeaderPrefixes: ['anthropic-', 'idempotency-'] } }];
    },
  }));
  beforeEach(() => upstream.reset());

  const spent = async (key: string) => (await gateway.balance(key)).key['spentUsd'];

  for (const protocol of PROTOCOLS) {
    describe(protocol, () => {
      it('answers 409 with request id, cost and `x-should-retry: false` to a repetition of a charged call, without a charge', async () => {
        const { key } = await gateway.newCustomer('10');
        upstream.always(answerOf[protocol]({ usage: USAGE }));
        const call = () => gateway.call(PATH[protocol], { key, headers: keyed('order-1'), body: askIn(protocol) });
        const first = await call();
        expect(first.status, first.text).to.equal(200);
        const second = await call();
        expect(second.status, second.text).to.equal(409);
        expect(second.headers['x-should-retry']).to.equal('false');
        expect(second.json.error).to.deep.include({
          code: 'ALREADY_CHARGED',
          details: { requestId: first.headers['x-svc-request-id'], costUsd: COST },
        });
        expect(await spent(key)).to.equal(COST);
        expect(upstream.calls).to.have.length(1);
      });

      it('answers 409 with Retry-After to a repetition while the first call runs, and calls no upstream', async () => {
        const { key } = await gateway.newCustomer('10');
        upstream.next(afterMs(500, answerOf[protocol]({ usage: USAGE })));
        const call = () => gateway.call(PATH[protocol], { key, headers: keyed('order-1'), body: askIn(protocol) });
        const first = call();
        await upstream.call(1);
        const second = await call();
        expect(second.status, second.text).to.equal(409);
        expect(second.json.error.code).to.equal('IDEMPOTENCY_KEY_IN_USE');
        expect(second.headers).to.include({ 'x-should-retry': 'true', 'retry-after': '5' });
        const { status, headers } = await first;
        expect(status).to.equal(200);
        expect(second.json.error.details).to.deep.equal({ requestId: headers['x-svc-request-id'] });
        expect(upstream.calls).to.have.length(1);
        expect(await spent(key)).to.equal(COST);
      });

      it('runs a repetition as a new call if the first call ended without a charge', async () => {
        const { key } = await gateway.newCustomer('10');
        upstream.next(failureOf[protocol](422, { message: 'not like this' }));
        upstream.always(answerOf[protocol]({ usage: USAGE }));
        const call = () => gateway.call(PATH[protocol], { key, headers: keyed('order-1'), body: askIn(protocol) });
        expect((await call()).status).to.equal(422);
        expect((await call()).status).to.equal(200);
        expect((await call()).status).to.equal(409);
        expect(await spent(key)).to.equal(COST);
      });

      it('answers 409 IDEMPOTENCY_CONFLICT to the same key with another body', async () => {
        const { key } = await gateway.newCustomer('10');
        upstream.always(answerOf[protocol]({ usage: USAGE }));
        const call = (body: object) => gateway.call(PATH[protocol], { key, headers: keyed('order-1'), body });
        const first = await call(askIn(protocol));
        const second = await call(askIn(protocol, { max_tokens: 101 }));
        expect(second.status, second.text).to.equal(409);
        expect(second.headers['x-should-retry']).to.equal('false');
        expect(second.json.error).to.deep.include({
          code: 'IDEMPOTENCY_CONFLICT',
          param: 'idempotency-key',
          details: { requestId: first.headers['x-svc-request-id'] },
        });
        expect(upstream.calls).to.have.length(1);
      });
    });
  }

  it('answers 409 IDEMPOTENCY_CONFLICT to the same key and body at another path or on a direct route', async () => {
    const { key } = await gateway.newCustomer('10');
    upstream.always(messagesAnswer({ usage: USAGE }));
    const call = (path: string, headers = {}) =>
      gateway.call(path, { key, headers: { ...keyed('order-1'), ...headers }, body: ask() });
    expect((await call('/v1/messages')).status).to.equal(200);
    expect((await call('/cost/v1/messages')).json.error.code).to.equal('IDEMPOTENCY_CONFLICT');
    expect((await call('/v1/messages', { host: 'acme.p.localhost' })).json.error.code).to.equal('IDEMPOTENCY_CONFLICT');
    expect((await call('/v1/messages')).json.error.code).to.equal('ALREADY_CHARGED');
  });

  it('does not charge the repetition of a stream whose client disconnected', async () => {
    const { key } = await gateway.newCustomer('10');
    upstream.always(messagesStream({ texts: ['one ', 'two ', 'three '], usage: USAGE, delayMs: 50 }));
    const body = JSON.stringify(ask({ stream: true }));
    const headers = { 'x-api-key': key, 'content-type': 'application/json', ...keyed('order-1') };
    const first = await request(`${gateway.url}/v1/messages`, { method: 'POST', headers, body });
    for await (const chunk of first.body) if (String(chunk).includes('one')) break;
    await until('the first call is charged', async () => (await spent(key)) !== '0.00000000' || undefined);
    const cost = await spent(key);
    const second = await gateway.call('/v1/messages', { key, headers: keyed('order-1'), body: ask({ stream: true }) });
    expect(second.status, second.text).to.equal(409);
    expect(second.json.error.details.costUsd).to.equal(cost);
    expect(await spent(key)).to.equal(cost);
  });

  it('belongs to the account: it conflicts under another API key of the account, but not under another account', async () => {
    const { key, accountId } = await gateway.newCustomer('10');
    const { key: stranger } = await gateway.newCustomer('10');
    const colleague = await gateway.admin('POST', `/admin/v1/accounts/${accountId}/keys`, { name: 'second' });
    upstream.always(messagesAnswer({ usage: USAGE }));
    const call = (by: string) => gateway.call('/v1/messages', { key: by, headers: keyed('order-1'), body: ask() });
    expect((await call(key)).status).to.equal(200);
    expect((await call(colleague.json.key)).status).to.equal(409);
    expect((await call(stranger)).status).to.equal(200);
  });

  for (const [what, value] of [
    ['of more than 160 characters', 'k'.repeat(161)],
    ['that is empty', ''],
  ] as const) {
    it(`answers 400 and names the header for a key ${what}`, async () => {
      const { key } = await gateway.newCustomer('10');
      const answer = await gateway.call('/v1/messages', { key, headers: keyed(value), body: ask() });
      expect(answer.status, answer.text).to.equal(400);
      expect(answer.json.error).to.include({ code: 'IDEMPOTENCY_KEY_INVALID', param: 'idempotency-key' });
      expect(answer.json.error.message).to.include('Idempotency-Key');
      expect(upstream.calls).to.have.length(0);
    });
  }

  it('answers 400 if the header is sent twice', async () => {
    const { key } = await gateway.newCustomer('10');
    const { statusCode, body } = await request(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: ['x-api-key', key, 'content-type', 'application/json', 'idempotency-key', 'a', 'idempotency-key', 'b'],
      body: JSON.stringify(ask()),
    });
    expect(statusCode).to.equal(400);
    expect(((await body.json()) as { error: { code: string } }).error.code).to.equal('IDEMPOTENCY_KEY_INVALID');
  });

  it('accepts 160 characters, and the gateway does not forward the header', async () => {
    const { key } = await gateway.newCustomer('10');
    upstream.always(messagesAnswer({ usage: USAGE }));
    const answer = await gateway.call('/v1/messages', { key, headers: keyed('k'.repeat(160)), body: ask() });
    expect(answer.status, answer.text).to.equal(200);
    expect(upstream.calls[0]?.headers).not.to.have.property('idempotency-key');
  });

  it('is independent of the retry count that SDKs send, which the usage record keeps', async () => {
    const { key } = await gateway.newCustomer('10');
    upstream.always(messagesAnswer({ usage: USAGE }));
    const call = (count: string) =>
      gateway.call('/v1/messages', { key, headers: { 'x-stainless-retry-count': count }, body: ask() });
    const routingOf = async (count: string) => {
      const answer = await call(count);
      expect(answer.status).to.equal(200);
      const id = answer.headers['x-svc-request-id'] ?? '';
      await gateway.record(key, id);
      return (await gateway.admin('GET', `/admin/v1/usage/${id}`)).json.routing;
    };
    expect(await routingOf('2')).to.include({ clientRetry: 2 });
    expect(await routingOf('0')).to.equal(null);
    expect(await routingOf('many')).to.equal(null);
  });
});
