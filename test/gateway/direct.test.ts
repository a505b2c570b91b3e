import { expect } from 'chai';
import { ask, askIn, PATH, PROTOCOLS, type TestProtocol } from '../support/calls';
import { answerOf, failureOf } from '../support/dialects';
import { MODEL } from '../support/gateway';
import { rawPost, statusOf } from '../support/raw';
import { useGateway, useUpstream } from '../support/story';
import { closedPort, neverAnswer, resetBeforeHeaders, respond } from '../support/upstream';

describe('A direct address (a host name that selects one upstream)', () => {
  const acme = useUpstream();
  const other = useUpstream();
  const failing = useUpstream();
  let key: string;

  const gateway = useGateway(async () => {
    const models = { 'Acme.Large-Native': { aliases: [MODEL] } };
    return {
      upstreams: {
        acme: { url: acme.url, models, timeouts: { connect: '1s', headers: '1s', idle: '1s' } },
        other: { url: other.url, tier: 'official' },
        'only-chat': { url: other.url, adapter: 'chat' },
        closed: { url: await closedPort() },
        failing: { url: failing.url, models, timeouts: { connect: '1s', headers: '1s', idle: '1s' } },
        switched: { url: other.url, credential: { env: 'NOT_SET' } },
      },
      env: { DIRECT_DOMAIN: 'Gateway.Example' },
    };
  });

  before(async () => {
    ({ key } = await gateway.newCustomer('100'));
  });
  beforeEach(() => {
    acme.reset();
    other.reset();
    acme.always(answerOf.messages());
    other.always(answerOf.messages());
  });

  const at = (host: string, path: string, body: unknown) =>
    gateway.call(path, { key, headers: { host }, body: body as Record<string, unknown> });
  const native = (protocol: TestProtocol = 'messages', more: Record<string, unknown> = {}) =>
    askIn(protocol, { model: 'Acme.Large-Native', ...more });

  for (const protocol of PROTOCOLS) {
    it(`routes a call to that upstream, which the charge and the usage record name (${protocol})`, async () => {
      acme.always(answerOf[protocol]());
      const answer = await at('acme.p.gateway.example', `${PATH[protocol]}?beta=true`, native(protocol));
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.headers).to.include({
        'x-routing-provider': 'acme',
        'x-routing-attempts': '1',
        'x-routing-fallback': 'false',
        'x-ai-cost': '0.00010500',
      });
      expect(acme.calls[0]?.path).to.equal(`${PATH[protocol]}?beta=true`);
      const record = await gateway.record(key, answer.headers['x-svc-request-id'] ?? '');
      expect(record).to.include({ upstream: 'acme', strategy: 'direct', cost: '0.00010500', billing: 'actual' });
      expect(other.calls).to.have.length(0);
    });

    for (const status of [400, 401, 402, 403, 404, 429, 500, 503, 529]) {
      it(`relays the upstream's ${status} unchanged after one attempt (${protocol})`, async () => {
        acme.always(failureOf[protocol](status, { message: 'in its own words' }, { 'retry-after': '1' }));
        const answer = await at('acme.p.gateway.example', PATH[protocol], native(protocol));
        expect(answer.status).to.equal(status);
        expect(answer.headers).to.include({
          'x-svc-source': 'provider',
          'x-routing-attempts': '1',
          'retry-after': '1',
        });
        expect(answer.text).to.include('in its own words').and.not.include('request_id');
        expect(acme.calls).to.have.length(1);
        expect(other.calls).to.have.length(0);
      });
    }
  }

  it('causes only one attempt if the upstream is unreachable, disconnects or does not answer', async () => {
    expect((await at('closed.p.gateway.example', PATH.messages, ask())).status).to.equal(502);
    for (const [script, status] of [
      [resetBeforeHeaders(), 502],
      [neverAnswer(), 504],
    ] as const) {
      failing.reset();
      failing.always(script);
      // No connection is open yet: on a reused one the gateway would repeat the request.
      const answer = await at('failing.p.gateway.example', PATH.messages, native());
      expect(answer.status).to.equal(status);
      expect(answer.headers['x-svc-source']).to.equal('platform');
      expect(answer.json.error.details.attempts).to.have.length(1);
      expect(failing.calls).to.have.length(1);
    }
  });

  it('never causes the ejection of its upstream, however often its calls fail', async () => {
    failing.reset();
    failing.always(respond({ status: 503, body: {} }));
    for (let call = 0; call < 10; call += 1) await at('failing.p.gateway.example', PATH.messages, native());
    const { items } = (await gateway.admin('GET', '/admin/v1/upstreams')).json;
    expect(items.find(({ name }: { name: string }) => name === 'failing').state).to.equal('available');
  });

  for (const host of [
    'nobody.p.gateway.example',
    'acme.p.elsewhere.example',
    'acme.p.gateway.example.evil.example',
    'x.acme.p.gateway.example',
    '.p.gateway.example',
    'acme.P.localhost:8080',
  ]) {
    it(`with an unknown upstream gets 404 without calling an upstream: ${host}`, async () => {
      const answer = await at(host, PATH.messages, ask());
      expect(answer.status).to.equal(404);
      expect(answer.json.error.code).to.equal('NOT_FOUND');
      expect(answer.headers['x-svc-source']).to.equal('platform');
      expect([...acme.calls, ...other.calls]).to.have.length(0);
    });
  }

  for (const host of [
    'acme%2ep.gateway.example',
    'acme@other',
    'acme.p.gateway.example..',
    'acme.p.gateway.example, x',
    'acme.p.gateway.example/x',
  ]) {
    it(`with an invalid host gets 400: ${host}`, async () => {
      const answer = await rawPost(
        gateway.url,
        PATH.messages,
        [`Host: ${host}`, `x-api-key: ${key}`],
        JSON.stringify(ask()),
      );
      expect(statusOf(answer)).to.equal(400);
      expect([...acme.calls, ...other.calls]).to.have.length(0);
    });
  }

  it('serves only model calls whose path has no strategy prefix', async () => {
    for (const path of ['/speed/v1/messages', '/default/v1/messages', '/quality/v1/chat/completions', '/v1/messages/'])
      expect((await at('acme.p.gateway.example', path, native())).status, path).to.equal(404);
    for (const path of ['/v1/usage', '/v1/models', '/healthz', '/console/']) {
      const answer = await gateway.call(path, { method: 'GET', key, headers: { host: 'acme.p.gateway.example' } });
      expect(answer.status, path).to.equal(404);
    }
    const count = await at('acme.p.gateway.example', '/v1/messages/count_tokens', {});
    expect(count.status).to.equal(404);
    expect(count.json.error.code).to.equal('ENDPOINT_NOT_IMPLEMENTED');
    const get = await gateway.call(PATH.messages, { method: 'GET', headers: { host: 'acme.p.gateway.example' } });
    expect(get.status).to.equal(405);
    expect(get.headers['allow']).to.equal('POST');
  });

  for (const model of [MODEL, 'acme.large-native', 'Acme-Large-Native', 'acme/Acme.Large-Native']) {
    it(`refuses ${model}, which is not the upstream's own name of a model`, async () => {
      const answer = await at('acme.p.gateway.example', PATH.messages, ask({ model }));
      expect(answer.status).to.equal(400);
      expect(answer.json.error).to.include({ code: 'MODEL_NOT_SUPPORTED', param: 'model' });
      expect(acme.calls).to.have.length(0);
    });
  }

  it("answers a wrong path with the path of the upstream's protocol, and gives the reason if the upstream is disabled", async () => {
    const wrong = await at('only-chat.p.gateway.example', PATH.messages, ask());
    expect(wrong.json.error.code).to.equal('MODEL_NOT_SUPPORTED');
    expect(wrong.json.error.message).to.include('/v1/chat/completions');
    const off = await at('switched.p.gateway.example', PATH.messages, ask());
    expect(off.status).to.equal(502);
    expect(off.json.error.details.attempts[0]).to.include({ upstream: 'switched', reason: 'NOT_SET is not set' });
  });

  it('demands an API key that may call the model', async () => {
    const none = await gateway.call(PATH.messages, { headers: { host: 'acme.p.gateway.example' }, body: native() });
    expect(none.status).to.equal(401);
    const limited = await gateway.newCustomer('10', { allowedModels: ['another-model'] });
    const answer = await gateway.call(PATH.messages, {
      key: limited.key,
      headers: { host: 'acme.p.gateway.example' },
      body: native(),
    });
    expect(answer.json.error.code).to.equal('MODEL_NOT_ALLOWED');
  });

  it('in an absolute request target takes precedence over the Host header', async () => {
    const body = JSON.stringify(native());
    const post = (target: string, host: string) =>
      rawPost(gateway.url, target, [`Host: ${host}`, `x-api-key: ${key}`], body);
    expect(statusOf(await post('http://acme.p.gateway.example/v1/messages', 'gateway.example'))).to.equal(200);
    expect(acme.calls).to.have.length(1);
    expect(statusOf(await post('http://nobody.p.gateway.example/v1/messages', 'acme.p.gateway.example'))).to.equal(404);
    expect(statusOf(await post('http://gateway.example/v1/messages?x=1', 'acme.p.gateway.example'))).to.equal(200);
    expect(other.calls[0]?.path).to.equal('/v1/messages?x=1');
    expect(statusOf(await post('http://a@acme.p.gateway.example/v1/messages', 'x'))).to.equal(400);
    expect(statusOf(await post('http://acme.p.gateway.example', 'x'))).to.equal(404);
  });

  it('relays unchanged an answer that does not follow the protocol, and charges nothing', async () => {
    acme.always(respond({ headers: { 'content-type': 'application/json' }, body: '{"error":{"message":"credits"}}' }));
    const answer = await at('acme.p.gateway.example', PATH.chat, native());
    expect(answer.text).to.equal('{"error":{"message":"credits"}}');
    expect(await gateway.record(key, answer.headers['x-svc-request-id'] ?? '')).to.include({
      billing: 'released',
      cost: '0.00000000',
    });
  });
});
