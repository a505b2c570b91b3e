import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { request } from 'undici';
import { ask } from '../support/calls';
import { startGateway, type TestGateway } from '../support/gateway';
import { until } from '../support/until';
import {
  chatStream,
  messagesStream,
  type RecordedCall,
  respond,
  startUpstream,
  type TestUpstream,
} from '../support/upstream';

const USAGE = { input: 1_000, output: 200 };
/** Words at 20 ms each. They last twice as long as the gateway reads a stream that its client left. */
const WORDS = Array.from({ length: 1_000 }, () => 'word ');

describe('The gateway, at the end of an unusual answer,', function () {
  this.timeout(60_000);
  let upstream: TestUpstream;
  let slow: TestUpstream;
  let gateway: TestGateway;
  let key: string;
  /** Calls whose clients disconnect first and which are asserted last, because the gateway reads their streams for 10 s more. */
  let left: { readonly compressed: RecordedCall; readonly both: RecordedCall; readonly key: string };

  before(async () => {
    [upstream, slow] = [await startUpstream(), await startUpstream()];
    gateway = await startGateway({
      upstreams: { acme: { url: upstream.url }, slow: { url: slow.url, models: { slow: {} } } },
    });
    ({ key } = await gateway.newCustomer('100'));
    const compressed = await leaveCompressed();
    left = { compressed, ...(await leaveBoth()) };
  });
  after(async () => {
    await gateway?.stop();
    await Promise.all([upstream?.stop(), slow?.stop()]);
  });
  beforeEach(() => upstream.reset());

  const recordOf = (answer: { headers: Record<string, string> }) =>
    gateway.record(key, answer.headers['x-svc-request-id'] ?? '');

  it('survives a redirect whose compressed body is broken', async () => {
    const script = respond({
      status: 302,
      headers: { location: '/x', 'content-encoding': 'gzip' },
      body: 'not gzip at all',
    });
    upstream.always(script);
    for (let round = 0; round < 5; round += 1)
      await gateway.call('/v1/messages', { key, body: ask() }).catch(() => undefined);
    expect((await gateway.call('/healthz', { method: 'GET' })).status).to.equal(200);
  });

  it('relays a compressed redirect without a body', async () => {
    upstream.next(
      respond({ status: 302, headers: { location: '/x', 'content-encoding': 'gzip', 'content-length': '0' } }),
    );
    const answer = await gateway.call('/v1/messages', { key, body: ask() });
    expect(answer.status).to.equal(302);
    expect(answer.headers['location']).to.equal('/x');
  });

  it('ends a stream with the error event after a malformed event, and charges nothing', async () => {
    const whole = messagesStream({ texts: ['one ', 'two '], usage: USAGE });
    const events = [...whole.events];
    events.splice(5, 0, 'event: content_block_delta\ndata: {"type":\n\n');
    upstream.next(respond({ headers: { 'content-type': 'text/event-stream' }, body: events.join('') }));
    const answer = await gateway.call('/v1/messages', { key, body: ask({ stream: true }) });
    expect(answer.text).to.include('event: error');
    expect(answer.text).not.to.include('message_stop');
    expect(await recordOf(answer)).to.include({ billing: 'released', cost: '0.00000000' });
  });

  it('charges a complete stream that has one choice although the call asked for two', async () => {
    upstream.next(chatStream({ texts: ['one'], usage: USAGE, withUsage: true }));
    const answer = await gateway.call('/v1/chat/completions', { key, body: ask({ stream: true, n: 2 }) });
    expect(answer.text.trimEnd().endsWith('data: [DONE]')).to.equal(true);
    expect(answer.text).not.to.include('"error"');
    expect(await recordOf(answer)).to.include({ billing: 'actual', cost: '0.00600000' });
  });

  for (const [title, body, contentType] of [
    ['an error', '{"error":{"message":"Insufficient credits","code":402}}', 'application/json'],
    ['an empty body', '', 'application/json'],
    ['an HTML page', '<h1>maintenance</h1>', 'text/html'],
  ] as const) {
    it(`takes ${title} with status 200 for a failure, and charges nothing`, async () => {
      upstream.always(respond({ headers: { 'content-type': contentType }, body }));
      const answer = await gateway.call('/v1/chat/completions', { key, body: ask() });
      expect(answer.status).to.equal(502);
      expect(await recordOf(answer)).to.include({ billing: 'released', cost: '0.00000000' });
    });
  }

  it('relays the error of the only upstream if a call exceeds its context window', async () => {
    const body = { error: { message: 'too long', code: 'context_length_exceeded', type: 'invalid_request_error' } };
    upstream.always(respond({ status: 400, body }));
    const answer = await gateway.call('/v1/chat/completions', { key, body: ask() });
    expect(answer.status).to.equal(400);
    expect(answer.headers).to.include({ 'x-svc-source': 'provider', 'x-routing-attempts': '1' });
    expect(answer.json).to.deep.equal(body);
  });

  it('relays every byte that follows an error in a stream', async () => {
    const body = 'data: {"error":{"code":"content_filter","message":"no"}}\n\ndata: [DONE]\n\ndata: {"half';
    upstream.always(respond({ headers: { 'content-type': 'text/event-stream' }, body }));
    const answer = await gateway.call('/v1/chat/completions', { key, body: ask({ stream: true }) });
    expect(answer.text).to.equal(body);
  });

  it('refuses a model name with a NUL, which Postgres cannot store', async () => {
    const answer = await gateway.call('/v1/messages', { key, body: ask({ model: 'a\u0000b' }) });
    expect(answer.status).to.equal(400);
    expect(answer.json.error.param).to.equal('model');
  });

  it('decodes an answer that the upstream compressed unasked', async () => {
    const text = JSON.stringify({
      type: 'message',
      content: [{ type: 'text', text: 'Hi' }],
      usage: { input_tokens: 1_000, output_tokens: 200 },
    });
    upstream.next(
      respond({ headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' }, body: gzipSync(text) }),
    );
    const answer = await gateway.call('/v1/messages', { key, body: ask() });
    expect(answer.text).to.equal(text);
    expect(answer.headers).not.to.have.property('content-encoding');
    expect(answer.headers['x-ai-cost']).to.equal('0.00600000');
  });

  async function leaveCompressed(): Promise<RecordedCall> {
    slow.next(messagesStream({ texts: WORDS, delayMs: 20, gzip: true }));
    const leaving = new AbortController();
    const answer = await request(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify(ask({ model: 'slow', stream: true })),
      signal: leaving.signal,
    });
    answer.body.on('error', () => undefined);
    await until('something has come', () => answer.body.readableLength > 0 || answer.body.read() !== null);
    leaving.abort();
    return slow.call(1);
  }

  async function leaveBoth(): Promise<{ readonly both: RecordedCall; readonly key: string }> {
    const customer = await gateway.newCustomer('10');
    slow.always(messagesStream({ texts: WORDS, delayMs: 20 }));
    const { port } = new URL(gateway.url);
    const socket = connect(Number(port), '127.0.0.1');
    const body = JSON.stringify(ask({ model: 'slow', stream: true }));
    const one = `POST /v1/messages HTTP/1.1\r\nHost: x\r\nx-api-key: ${customer.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    socket.write(one + one);
    const both = await slow.call(3);
    socket.destroy();
    return { both, key: customer.key };
  }

  it('disconnects from the upstream when the client of a compressed stream disconnects', () =>
    left.compressed.clientGone);

  it('ends both of two pipelined calls when their connection closes', async () => {
    await left.both.clientGone;
    await until('nothing is held', async () => (await gateway.balance(left.key)).heldUsd === '0.00000000');
  });
});
