import Anthropic from '@anthropic-ai/sdk';
import { expect } from 'chai';
import { ask, PATH } from '../support/calls';
import { MODEL, startGateway, type TestGateway } from '../support/gateway';
import {
  type Cut,
  chatErrorStream,
  chatStream,
  messagesErrorStream,
  messagesStream,
  resetBeforeHeaders,
  startUpstream,
  type TestUpstream,
} from '../support/upstream';

describe('The type of an error in a stream', function () {
  this.timeout(60_000);
  let upstream: TestUpstream;
  let gateway: TestGateway;
  let key: string;

  before(async () => {
    upstream = await startUpstream();
    gateway = await startGateway({
      upstreams: { acme: { url: upstream.url, timeouts: { connect: '1s', headers: '5s', idle: '1s' } } },
    });
    ({ key } = await gateway.newCustomer('10'));
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });
  beforeEach(() => upstream.reset());

  /** Returns the data of the last event of a stream that is cut after the first piece of text. */
  async function lastEvent(protocol: 'messages' | 'chat', cut: Cut) {
    upstream.always(
      protocol === 'messages'
        ? messagesStream({ texts: ['one ', 'two '], cutAfter: 4, cut })
        : chatStream({ texts: ['one ', 'two '], cutAfter: 2, cut, withUsage: true }),
    );
    const answer = await gateway.call(PATH[protocol], { key, body: ask({ stream: true }) });
    expect(answer.text).to.include('one ');
    const last = answer.text.trimEnd().split('\n\n').at(-1) ?? '';
    return JSON.parse(last.slice(last.indexOf('data: ') + 6));
  }

  it('is api_error in a Messages stream that an upstream resets', async () => {
    const { type, error } = await lastEvent('messages', 'reset');
    expect(type).to.equal('error');
    expect(error).to.include({ type: 'api_error', code: 'ALL_PROVIDERS_FAILED', retryable: true });
  });

  it('is timeout_error in a Messages stream whose upstream falls silent', async () => {
    expect((await lastEvent('messages', 'stall')).error).to.include({
      type: 'timeout_error',
      code: 'UPSTREAM_TIMEOUT',
    });
  });

  it('stays server_error in a Chat stream', async () => {
    expect((await lastEvent('chat', 'reset')).error).to.include({
      type: 'server_error',
      code: 'ALL_PROVIDERS_FAILED',
    });
  });

  it('stays server_error in an answer that is not a stream', async () => {
    upstream.always(resetBeforeHeaders());
    const answer = await gateway.call('/v1/messages', { key, body: ask({ stream: true }) });
    expect(answer.status).to.equal(502);
    expect(answer.json.error).to.include({ type: 'server_error', code: 'ALL_PROVIDERS_FAILED' });
  });

  it("is the upstream's own when the upstream reported the error", async () => {
    upstream.next(messagesErrorStream({ type: 'overloaded_error', message: 'Overloaded', afterEvents: 4 }));
    const answer = await gateway.call('/v1/messages', { key, body: ask({ stream: true }) });
    expect(answer.text).to.include('{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}');
  });

  for (const [protocol, script] of [
    ['messages', messagesErrorStream({ afterEvents: 6 })],
    ['chat', chatErrorStream({ afterEvents: 3 })],
  ] as const)
    it(`is not recorded if the answer was complete before the error (${protocol})`, async () => {
      upstream.next(script);
      const answer = await gateway.call(PATH[protocol], { key, body: ask({ stream: true }) });
      expect(answer.text).not.to.include('error');
      const record = await gateway.record(key, answer.headers['x-svc-request-id'] ?? '');
      expect(record).to.include({ status: 200, source: 'provider', errorCode: null });
      expect(record['billing']).to.equal(protocol === 'messages' ? 'actual' : 'estimated');
      expect(Number(record['cost'])).to.be.above(0);
    });

  it("is one of the types that the vendor's SDK knows", async () => {
    upstream.always(messagesStream({ texts: ['one ', 'two '], cutAfter: 4, cut: 'reset' }));
    const anthropic = new Anthropic({ baseURL: gateway.url, apiKey: key, maxRetries: 0 });
    const stream = anthropic.messages.stream({ ...HELLO, model: MODEL });
    const error = await stream.finalMessage().then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).to.be.instanceOf(Anthropic.APIError).and.to.have.property('type', 'api_error');
  });
});

const HELLO = { max_tokens: 100, messages: [{ role: 'user' as const, content: 'Hello' }] };
