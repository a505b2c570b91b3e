import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { ask, PATH, PROTOCOLS, type TestProtocol } from '../support/calls';
import { type Answered, type GatewayOptions, startGateway, type TestGateway } from '../support/gateway';
import { statusOf } from '../support/raw';
import { newStores } from '../support/stores';
import { until } from '../support/until';
import { chatStream, messagesStream, neverAnswer, startUpstream, type TestUpstream } from '../support/upstream';

/** Streams that would go on for minutes. */
const WORDS = { texts: Array.from({ length: 10_000 }, () => 'word '), delayMs: 20 };
/** More than the buffers between an upstream and a client that does not read can take. */
const LONG = messagesStream({ texts: Array.from({ length: 192 }, () => 'x'.repeat(65_536)) });

describe('A stop while calls run that do not end', function () {
  this.timeout(120_000);
  let upstream: TestUpstream;
  let key: string;
  let code: number | null;
  let next: TestGateway;
  const streams = {} as Record<TestProtocol, Answered>;
  let unstreamed: Answered;
  let uploading: string;
  let unread: Socket;

  before(async () => {
    upstream = await startUpstream();
    const options: GatewayOptions = {
      stores: await newStores(),
      upstreams: { acme: { url: upstream.url, models: { 'acme-large': { maxOutput: 10_000_000 } } } },
      system: { shutdownGrace: '500ms' },
    };
    const gateway = await startGateway(options);
    ({ key } = await gateway.newCustomer('1000'));

    upstream.next(messagesStream(WORDS));
    const messages = gateway.call(PATH.messages, { key, body: ask({ stream: true }) });
    await upstream.call(1);
    upstream.next(chatStream(WORDS));
    const chat = gateway.call(PATH.chat, { key, body: ask({ stream: true }) });
    await upstream.call(2);
    upstream.next(neverAnswer());
    const waiting = gateway.call(PATH.messages, { key, body: ask() });
    await upstream.call(3);
    upstream.next(LONG);
    unread = begin(gateway, key, JSON.stringify(ask({ stream: true, max_tokens: 9_000_000 })));
    unread.pause();
    await upstream.call(4);
    const slow = begin(gateway, key, '{"model":', 1_000);
    const uploaded = readAll(slow);
    await until('the streams have begun', async () => (await gateway.balance(key)).heldUsd !== '0.00000000');

    gateway.process.kill('SIGTERM');
    [streams.messages, streams.chat, unstreamed, uploading] = await Promise.all([messages, chat, waiting, uploaded]);
    code = await gateway.ended;
    await gateway.stop();
    next = await startGateway(options);
  });

  after(async () => {
    unread?.destroy();
    await next?.stop();
    await upstream?.stop();
  });

  const recordOf = (answer: Answered) => next.record(key, answer.headers['x-svc-request-id'] ?? '');

  it('ends the process with exit code 0', () => {
    expect(code).to.equal(0);
  });

  for (const protocol of PROTOCOLS) {
    it(`ends a stream with the error event of its protocol and charges nothing (${protocol})`, async () => {
      const { text } = streams[protocol];
      const last = text.trimEnd().split('\n\n').at(-1) ?? '';
      const [, data = ''] = /^data: (.*)$/m.exec(last) ?? [];
      expect(last.startsWith(protocol === 'messages' ? 'event: error\n' : 'data: {"error":')).to.equal(true);
      expect(JSON.parse(data).error).to.include({ code: 'DRAINING', retryable: true });
      expect(text).to.not.include('message_stop').and.not.include('[DONE]');
      expect(await recordOf(streams[protocol])).to.include({
        billing: 'released',
        cost: '0.00000000',
        errorCode: 'DRAINING',
      });
    });
  }

  it('answers an unstreamed call with 503 and charges nothing', async () => {
    expect([unstreamed.status, unstreamed.json.error.code]).to.deep.equal([503, 'DRAINING']);
    expect(unstreamed.headers).to.include({ 'retry-after': '1', 'x-should-retry': 'true' });
    expect(await recordOf(unstreamed)).to.include({ billing: 'released', cost: '0.00000000', errorCode: 'DRAINING' });
  });

  it('answers a call whose body is still coming with 503', () => {
    expect(statusOf(uploading)).to.equal(503);
  });

  it('leaves a client that reads nothing, and charges nothing', async () => {
    const records = await until('all are recorded', async () => {
      const { items } = (await next.call('/v1/usage', { method: 'GET', key })).json;
      return items.length === 5 ? items : undefined;
    });
    for (const record of records) expect(record).to.include({ billing: 'released', cost: '0.00000000' });
    expect((await next.balance(key)).heldUsd).to.equal('0.00000000');
  });
});

function begin({ url }: TestGateway, key: string, body: string, length = body.length): Socket {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  const head = ['POST /v1/messages HTTP/1.1', 'Host: x', `x-api-key: ${key}`, 'content-type: application/json'];
  socket.write(`${head.join('\r\n')}\r\ncontent-length: ${length}\r\n\r\n${body}`);
  socket.on('error', () => undefined);
  return socket;
}

async function readAll(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk) => (text += chunk.toString()));
  await new Promise((done) => socket.once('close', done));
  return text;
}
