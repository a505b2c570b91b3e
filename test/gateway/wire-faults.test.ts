import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { ask, askAsSent, askIn, PATH, PROTOCOLS, type TestProtocol } from '../support/calls';
import { DIALECT, streamOf } from '../support/dialects';
import { type Answered, startGateway, type TestGateway, UPSTREAM_CREDENTIAL } from '../support/gateway';
import { held, PROBED } from '../support/held';
import { until } from '../support/until';
import { messagesStream, redirect, respond, type Script, startUpstream, type TestUpstream } from '../support/upstream';

/** Impossible counts of an upstream, as JSON text. */
const NONSENSE = ['-5', 'NaN', '-Infinity', '1e308', '1.5', '"7"', 'null', '{}', 'true'];

/** Texts outside ASCII, so that events are split inside characters too. */
const TEXTS = ['é', '😀 ', 'x'];

describe('With unusual bytes from an upstream,', function () {
  this.timeout(90_000);
  let upstream: TestUpstream;
  let elsewhere: TestUpstream;
  let gateway: TestGateway;
  let key: string;

  before(async () => {
    [upstream, elsewhere] = [await startUpstream(), await startUpstream()];
    const spellings = ['127.1', '2130706433', '0x7f.1', '[::ffff:7f00:1]', 'localhost', '127.0.0.1.'];
    const guarded = spellings.map((host, index) => [
      `guarded-${index}`,
      { url: `http://${host}:${elsewhere.port}`, allowPrivate: false, models: { [`guarded-${index}`]: {} } },
    ]);
    gateway = await startGateway({
      upstreams: { acme: { url: upstream.url }, ...Object.fromEntries(guarded) },
      env: PROBED,
    });
    ({ key } = await gateway.newCustomer('10000'));
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.stop();
    await elsewhere?.stop();
  });
  beforeEach(() => {
    upstream.reset();
    elsewhere.reset();
  });

  const call = (protocol: TestProtocol, more: Record<string, unknown> = {}): Promise<Answered> =>
    gateway.call(PATH[protocol], { key, body: askIn(protocol, more) });
  const recordOf = (answer: Answered) => gateway.record(key, answer.headers['x-svc-request-id'] ?? '');

  for (const protocol of PROTOCOLS) {
    for (const stream of [false, true]) {
      it(`${protocol}, ${stream ? 'streamed' : 'in one piece'}: impossible counts are replaced by an estimate, and never give money back`, async () => {
        const name = protocol === 'chat' ? 'completion_tokens' : 'output_tokens';
        for (const value of NONSENSE) {
          upstream.next(withCount(protocol, stream, name, value));
          const answer = await call(protocol, { stream });
          expect(answer.status, `${value}: ${answer.text}`).to.equal(200);
          const record = await recordOf(answer);
          expect(record, value).to.include({ billing: 'estimated', outputTokens: 3 });
          expect(Number(record['cost']), value).to.be.within(1e-8, 0.01);
        }
      });
    }

    for (const [what, options] of Object.entries({
      'byte by byte': { splitBytes: 1 },
      'byte by byte, with CR LF': { splitBytes: 1, crlf: true },
      'in sevens and elevens': { splitBytes: [7, 11] },
      compressed: { gzip: true },
      ...(!DIALECT[protocol].endTellsAll && { 'without its own end': { withoutDone: true } }),
    })) {
      it(`${protocol}: a stream that arrives ${what} is relayed whole and metered correctly`, async () => {
        const script = streamOf(protocol, { texts: TEXTS, ...options });
        upstream.next(script);
        const answer = await call(protocol, askAsSent(protocol));
        expect(answer.text.replace(/,"cost":\d+\.\d{8}/, '')).to.equal(script.text);
        expect(await recordOf(answer)).to.include({ billing: 'actual', inputTokens: 10, outputTokens: 5 });
      });
    }
  }

  it('a redirect to a private address is relayed, and the gateway neither connects there nor sends a credential', async () => {
    upstream.next(redirect(`http://127.0.0.1:${elsewhere.port}/v1/messages`, 307));
    const answer = await call('messages');
    expect(answer.status).to.equal(307);
    expect(answer.headers['x-svc-source']).to.equal('provider');
    expect(JSON.stringify(answer.headers)).not.to.include(UPSTREAM_CREDENTIAL);
    expect(elsewhere.connections).to.equal(0);
  });

  for (let index = 0; index < 6; index += 1) {
    it(`an upstream at a private address without allowPrivate gets no connection (spelling ${index + 1})`, async () => {
      const answer = await call('messages', { model: `guarded-${index}` });
      expect(answer.status).to.equal(502);
      expect(answer.json.error.details.attempts[0]).to.include({ outcome: 'connect_failed' });
      expect(elsewhere.connections).to.equal(0);
    });
  }

  it('100 callers that hardly read need little memory, because their upstreams must wait', async () => {
    const big = 'x'.repeat(32 * 1024);
    upstream.always(messagesStream({ texts: Array.from({ length: 250 }, () => big) }));
    await Promise.all(Array.from({ length: 20 }, () => call('messages', { model: 'nobody' })));
    const before = await held(gateway);
    const sockets: Socket[] = [];
    try {
      while (upstream.calls.length < 100) {
        const asked = upstream.calls.length;
        const socket = slowReader(gateway.url, key);
        sockets.push(socket);
        // On a busy machine Redis may be too slow, and the gateway refuses a call. Another client replaces it.
        await until('the upstream is asked', () => upstream.calls.length > asked || socket.bytesRead > 0);
      }
      await until('all are being answered', () => sockets.every(({ bytesRead }) => bytesRead > 0), 30_000);
      for (let round = 0; round < 100; round += 1) await gateway.call('/healthz', { method: 'GET' });
      const now = await held(gateway);
      const moreBytes = now.heapBytes + now.bufferBytes - before.heapBytes - before.bufferBytes;
      // Without backpressure 800 MB would be in memory. The gateway reads ahead at most 32 MB per account.
      expect(moreBytes).to.be.below((32 + 50) * 1024 * 1024);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
    // The gateway reads the rest of an answer for 10 s before it disconnects from the upstream.
    await until('the upstreams are told', () => upstream.openConnections === 0, 30_000);
    await until('nothing is held', async () => (await gateway.balance(key)).heldUsd === '0.00000000');
  });
});

/** Returns a valid answer with 12 bytes of text, in which one count is replaced. */
function withCount(protocol: TestProtocol, stream: boolean, name: string, value: string): Script {
  const wrong = (text: string) => text.replace(new RegExp(`"${name}":5(?=[,}])`, 'g'), `"${name}":${value}`);
  if (stream) {
    const script = streamOf(protocol, { texts: ['abcdef', 'ghijkl'] });
    return respond({ headers: { 'content-type': 'text/event-stream' }, body: wrong(script.text) });
  }
  const bodies = {
    messages: {
      type: 'message',
      content: [{ type: 'text', text: 'abcdefghijkl' }],
      usage: { input_tokens: 10, output_tokens: 5 },
    },
    chat: {
      choices: [{ message: { content: 'abcdefghijkl' } }],
      usage: { prompt_tokens: 10, completion_tokens: 5 },
    },
    responses: {
      output: [{ type: 'message', content: [{ type: 'output_text', text: 'abcdefghijkl' }] }],
      usage: { input_tokens: 10, output_tokens: 5 },
    },
  };
  const body = wrong(JSON.stringify(bodies[protocol]));
  return respond({ headers: { 'content-type': 'application/json' }, body });
}

/** Requests a stream and reads one byte a second, or what its system reads for it. */
function slowReader(url: string, key: string): Socket {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  const body = JSON.stringify(ask({ stream: true }));
  socket.write(
    `POST /v1/messages HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  socket.once('readable', () => socket.read(1));
  socket.on('error', () => undefined);
  return socket;
}
