import { expect } from 'chai';
import { ask, askIn, PATH, PROTOCOLS, type TestProtocol } from '../support/calls';
import { answerOf, streamOf } from '../support/dialects';
import { type Configured, startGateway, type TestGateway } from '../support/gateway';
import { setPolicy } from '../support/policy-settings';
import { messagesAnswer, messagesFailure, respond, startUpstream, type TestUpstream } from '../support/upstream';

const PASSED = {
  'retry-after': '7',
  'retry-after-ms': '6500',
  'x-should-retry': 'false',
  'openai-processing-ms': '512',
  'openai-version': '2020-10-01',
  'openai-model': 'acme-large-2026-10-01',
};

const OF_THE_ACCOUNT = {
  'anthropic-ratelimit-requests-remaining': '49',
  'anthropic-organization-id': 'org-of-the-platform',
  'x-ratelimit-remaining-tokens': '1999',
  'openai-organization': 'org-of-the-platform',
  'openai-project': 'proj_of_the_platform',
};

const WITHHELD = {
  'set-cookie': 'session=1',
  server: 'acme',
  'x-svc-source': 'forged',
  'x-routing-provider': 'forged',
};

const FROM_UPSTREAM = { ...PASSED, ...OF_THE_ACCOUNT, ...WITHHELD };

describe('Response headers of upstreams', () => {
  let upstream: TestUpstream;
  let gateway: TestGateway;
  let key: string;

  async function start(configure?: (config: Configured) => void): Promise<void> {
    gateway = await startGateway({ upstreams: { acme: { url: upstream.url } }, ...(configure && { configure }) });
    ({ key } = await gateway.newCustomer('10'));
  }

  before(async () => {
    upstream = await startUpstream();
  });
  after(() => upstream?.stop());
  beforeEach(() => upstream.reset());

  function answering(protocol: TestProtocol, stream: boolean, headers: Record<string, string>) {
    return stream ? streamOf(protocol, { headers }) : answerOf[protocol]({}, { headers });
  }

  function expectOurIds(headers: Record<string, string>): void {
    expect(headers['x-svc-request-id']).to.match(/^req_[0-9a-f]{24}$/);
    expect(headers['request-id']).to.equal(headers['x-svc-request-id']);
    expect(headers['x-request-id']).to.equal(headers['x-svc-request-id']);
  }

  describe('with the shipped settings,', () => {
    before(() => start());
    after(() => gateway?.stop());

    for (const protocol of PROTOCOLS) {
      for (const stream of [false, true]) {
        it(`reach the client if they are headers about retries or the model, but not about the platform's account (${protocol}, ${stream ? 'streamed' : 'in one piece'})`, async () => {
          const ids = { 'request-id': 'req_of_the_vendor', 'x-request-id': 'req_of_the_vendor' };
          upstream.next(answering(protocol, stream, { ...FROM_UPSTREAM, ...ids }));
          const { status, headers } = await gateway.call(PATH[protocol], { key, body: askIn(protocol, { stream }) });
          expect(status).to.equal(200);
          expect(headers).to.include(PASSED);
          for (const name of [...Object.keys(OF_THE_ACCOUNT), 'set-cookie', 'server', 'x-upstream-request-id'])
            expect(headers).not.to.have.property(name);
          expect(headers).to.include({ 'x-svc-source': 'provider', 'x-routing-provider': 'acme' });
          expectOurIds(headers);
        });
      }
    }

    it("reach the client with an error, too: the upstream's `x-should-retry` and `retry-after` are kept", async () => {
      upstream.next(messagesFailure(422, { type: 'invalid_request_error' }, FROM_UPSTREAM));
      const { status, headers } = await gateway.call('/v1/messages', { key, body: ask() });
      expect(status).to.equal(422);
      expect(headers)
        .to.include(PASSED)
        .and.not.to.have.any.keys(...Object.keys(OF_THE_ACCOUNT));
    });
  });

  describe('with `exposeAccountHeaders: true` and the header prefix `x-`,', () => {
    const expose = (config: Configured): void => {
      setPolicy(config, 'sse-relay', { exposeAccountHeaders: true });
      setPolicy(config, 'model-request', { forwardHeaderPrefixes: ['anthropic-', 'x-'] });
    };
    before(() => start(expose));
    after(() => gateway?.stop());

    it("reach the client even if they are headers about the platform's account, but never replace the gateway's own", async () => {
      upstream.next(messagesAnswer({}, { headers: { ...FROM_UPSTREAM, 'x-request-id': 'req_of_the_vendor' } }));
      const { headers } = await gateway.call('/v1/messages', { key, body: ask() });
      expect(headers).to.include({ ...PASSED, ...OF_THE_ACCOUNT });
      expect(headers).to.include({ 'x-svc-source': 'provider', 'x-routing-provider': 'acme' });
      expect(headers).not.to.have.any.keys('set-cookie', 'server');
      expectOurIds(headers);
    });

    for (const name of ['request-id', 'x-request-id']) {
      it(`include the vendor's ${name} header as x-upstream-request-id, for answers, streams and errors`, async () => {
        const headers = { [name]: 'req_of_the_vendor' };
        upstream.next(
          answering('messages', false, headers),
          answering('messages', true, headers),
          respond({ status: 422, body: {}, headers }),
        );
        for (const stream of [false, true, false]) {
          const answer = await gateway.call('/v1/messages', { key, body: ask({ stream }) });
          expect(answer.headers['x-upstream-request-id']).to.equal('req_of_the_vendor');
          expectOurIds(answer.headers);
        }
      });
    }
  });
});
