import { type AddressInfo, createServer, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { request } from 'undici';
import { ask, askAsSent, askIn, PATH, PROTOCOLS, type TestProtocol } from '../support/calls';
import { DIALECT, streamOf } from '../support/dialects';
import { type Answered, UPSTREAM_CREDENTIAL } from '../support/gateway';
import { held, PROBED } from '../support/held';
import { LeavingClient } from '../support/leaving-client';
import { setPolicy } from '../support/policy-settings';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { chatStream, messagesStream, redirect, respond, type Script } from '../support/upstream';

const ANSWER = JSON.stringify({ type: 'message', content: [], usage: { input_tokens: 10, output_tokens: 5 } });
/** Statuses and bytes that readers treat differently; `npm run attack` sends any. */
const STATUSES = [
  '000',
  '099',
  '100',
  '101',
  '199',
  '200',
  '204',
  '205',
  '299',
  '304',
  '407',
  '429',
  '599',
  '600',
  '999',
];
const BYTES = ['\0', '\x01', '\t', '\n', '\r', '\x1b', ' ', '"', ':', '\x7f', '\x80', '\xff'];

/** Impossible counts of an upstream, as JSON text. */
const NONSENSE = ['-5', 'NaN', '1e308', '1.5', '"7"', 'null', '{}'];

/** Texts outside ASCII, so that events are split inside characters too. */
const TEXTS = ['é', '😀 ', 'x'];
const USAGE = { input: 1_000, output: 200 };

/** The spellings of a private address. */
const SPELLINGS = ['127.1', '2130706433', '0x7f.1', '[::ffff:7f00:1]', 'localhost', '127.0.0.1.'];

describe('An upstream that answers with hostile or unusual bytes', function () {
  this.timeout(120_000);
  let respondRaw: (socket: Socket) => void;
  /** Speaks bytes; the others speak HTTP. */
  const raw = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => respondRaw(socket));
  });
  const upstream = useUpstream();
  const elsewhere = useUpstream();
  const gateway = useGateway(async () => {
    await new Promise<void>((done) => raw.listen(0, '127.0.0.1', done));
    const guarded = SPELLINGS.map((host, index) => [
      `guarded-${index}`,
      { url: `http://${host}:${elsewhere.port}`, allowPrivate: false, models: { [`guarded-${index}`]: {} } },
    ]);
    return {
      upstreams: {
        acme: { url: upstream.url },
        raw: { url: `http://127.0.0.1:${(raw.address() as AddressInfo).port}`, models: { raw: {} } },
        ...Object.fromEntries(guarded),
      },
      env: PROBED,
      configure: (config) => {
        setPolicy(config, 'failover', { maxAttempts: 1, sameUpstreamRetries: 0 });
        setPolicy(config, 'model-request', { forwardHeaderPrefixes: ['anthropic-', 'x-passed-'] });
      },
    };
  });
  let key: string;
  before(async () => {
    ({ key } = await gateway.newCustomer('10000'));
  });
  after(() => {
    raw.close();
  });
  beforeEach(() => {
    upstream.reset();
    elsewhere.reset();
  });

  const statusOf = async (bytes: string, stream = false): Promise<number> => {
    respondRaw = (socket) => socket.end(Buffer.from(bytes, 'latin1'));
    return (await gateway.call('/v1/messages', { key, body: ask({ model: 'raw', stream }) })).status;
  };
  const expectNothingHeld = () =>
    until('nothing is held', async () => (await gateway.balance(key)).heldUsd === '0.00000000', 30_000);
  const call = (protocol: TestProtocol, more: Record<string, unknown> = {}): Promise<Answered> =>
    gateway.call(PATH[protocol], { key, body: askIn(protocol, more) });
  const recordOf = (answer: Answered) => gateway.record(key, answer.headers['x-svc-request-id'] ?? '');

  it('never leaves its client without an answer, whatever status it sends', async () => {
    for (const status of STATUSES)
      for (const stream of [false, true]) {
        const said = `HTTP/1.1 ${status} Said\r\ncontent-length: 2\r\n\r\n{}`;
        expect(await statusOf(said, stream), status).to.be.within(200, 999);
      }
    await expectNothingHeld();
  });

  for (const [where, sayWith, expected] of [
    ['the reason phrase', (byte: string) => `200 O${byte}K\r\n`, [200, 502]],
    ['a relayed header', (byte: string) => `200 OK\r\nx-passed-a: b${byte}c\r\n`, [200, 502]],
    ["a relayed header's name", (byte: string) => `200 OK\r\nx-passed-${byte}b: c\r\n`, [200, 502]],
    ['the content type', (byte: string) => `200 OK\r\ncontent-type: b${byte}c\r\n`, [200, 502]],
    ['the location of a redirect', (byte: string) => `302 Found\r\nlocation: /b${byte}c\r\n`, [302, 502]],
  ] as const)
    it(`never leaves its client without an answer, whatever byte it puts into ${where}`, async () => {
      for (const byte of BYTES) {
        const said = `HTTP/1.1 ${sayWith(byte)}content-length: ${ANSWER.length}\r\n\r\n${ANSWER}`;
        expect(await statusOf(said), JSON.stringify(byte)).to.be.oneOf([...expected]);
      }
      await expectNothingHeld();
    });

  for (const [title, said, expected] of [
    ['a 304 with a body', 'HTTP/1.1 304 Not Modified\r\ncontent-length: 2\r\n\r\n{}', [304]],
    ['a 304 with a chunked body', 'HTTP/1.1 304 Not Modified\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n', [304]],
    ['a 204 with a body', 'HTTP/1.1 204 No Content\r\ncontent-length: 2\r\n\r\n{}', [502]],
    ['a 205 with a body', 'HTTP/1.1 205 Reset\r\ncontent-length: 2\r\n\r\n{}', [200, 205, 502]],
    ['ten megabytes of headers', `HTTP/1.1 200 OK\r\n${'x-filler: 1234567890\r\n'.repeat(450_000)}\r\n`, [502]],
    ['interim answers and nothing else', 'HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n'.repeat(5_000), [502]],
    ['another protocol', 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n', [502]],
  ] as const) {
    for (const stream of [false, true]) {
      it(`never leaves its client without an answer when it sends ${title}, ${stream ? 'streamed' : 'unstreamed'}`, async () => {
        expect(await statusOf(said, stream)).to.be.oneOf([...expected]);
        await expectNothingHeld();
      });
    }
  }

  it('is disconnected when it sends interim answers without end', async () => {
    respondRaw = (socket) => flood(socket, 'HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n');
    const answer = await gateway.call('/v1/messages', { key, body: ask({ model: 'raw' }) });
    expect([answer.status, answer.json.error.code]).to.deep.equal([502, 'ALL_PROVIDERS_FAILED']);
  });

  for (const protocol of PROTOCOLS) {
    it(`is relayed after 256 KB of preamble without any content (${protocol})`, async () => {
      respondRaw = (socket) => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n');
        flood(socket, `: ${'x'.repeat(1_000)}\n\n`);
      };
      const before = await held(gateway);
      const leaving = new AbortController();
      const { statusCode, body } = await request(`${gateway.url}${PATH[protocol]}`, {
        method: 'POST',
        headers: { 'x-api-key': key, 'content-type': 'application/json' },
        body: JSON.stringify(askIn(protocol, { model: 'raw', stream: true })),
        signal: leaving.signal,
      });
      body.on('error', () => undefined);
      expect(statusCode).to.equal(200);
      const during = await held(gateway);
      leaving.abort();
      const grownBytes = during.heapBytes + during.bufferBytes - before.heapBytes - before.bufferBytes;
      expect(grownBytes).to.be.lessThan(8 * 1024 * 1024);
    });
  }

  for (const protocol of PROTOCOLS) {
    for (const stream of [false, true]) {
      it(`${protocol}, ${stream ? 'streamed' : 'in one piece'}: an estimate replaces impossible token counts, and never credits money`, async () => {
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
      it(`${protocol}: a stream that arrives ${what} is relayed completely and metered correctly`, async () => {
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

  for (const [index, spelling] of SPELLINGS.entries()) {
    it(`an upstream at a private address gets no connection without the setting \`allowPrivate\`: ${spelling}`, async () => {
      const answer = await call('messages', { model: `guarded-${index}` });
      expect(answer.status).to.equal(502);
      expect(answer.json.error.details.attempts[0]).to.include({ outcome: 'connect_failed' });
      expect(elsewhere.connections).to.equal(0);
    });
  }

  it('100 clients that hardly read use little memory, because the gateway pauses their upstreams', async () => {
    const big = 'x'.repeat(32 * 1024);
    upstream.always(messagesStream({ texts: Array.from({ length: 250 }, () => big) }));
    await Promise.all(Array.from({ length: 20 }, () => call('messages', { model: 'nobody' })));
    const before = await held(gateway);
    const clients: LeavingClient[] = [];
    try {
      // On a busy machine Redis may be too slow, and the gateway refuses a call. Another client replaces it.
      while (upstream.calls.length < 100) {
        const client = new LeavingClient(gateway, '/v1/messages', key, ask({ stream: true }));
        clients.push(client);
        await until('it is answered', () => client.text !== '', 30_000);
        client.stopReading();
      }
      for (let round = 0; round < 100; round += 1) await gateway.call('/healthz', { method: 'GET' });
      const now = await held(gateway);
      const moreBytes = now.heapBytes + now.bufferBytes - before.heapBytes - before.bufferBytes;
      // Without backpressure 800 MB would be in memory. The gateway reads ahead at most 32 MB per account.
      expect(moreBytes).to.be.below((32 + 50) * 1024 * 1024);
    } finally {
      for (const client of clients) client.leave();
    }
    // The gateway reads the rest of an answer for 10 s before it disconnects from the upstream.
    await until('the upstreams are told', () => upstream.openConnections === 0, 30_000);
    await expectNothingHeld();
  });

  it('does not stop the gateway with a redirect whose compressed body is broken', async () => {
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

  it('can send a compressed redirect without a body, which the gateway relays', async () => {
    upstream.next(
      respond({ status: 302, headers: { location: '/x', 'content-encoding': 'gzip', 'content-length': '0' } }),
    );
    const answer = await gateway.call('/v1/messages', { key, body: ask() });
    expect(answer.status).to.equal(302);
    expect(answer.headers['location']).to.equal('/x');
  });

  it('is paid for a complete stream that has one choice although the call asked for two', async () => {
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
    it(`fails if it sends ${title} with status 200, and the call costs nothing`, async () => {
      upstream.always(respond({ headers: { 'content-type': contentType }, body }));
      const answer = await gateway.call('/v1/chat/completions', { key, body: ask() });
      expect(answer.status).to.equal(502);
      expect(await recordOf(answer)).to.include({ billing: 'released', cost: '0.00000000' });
    });
  }

  it('can send bytes after an error in a stream, and the gateway relays every byte', async () => {
    const body = 'data: {"error":{"code":"content_filter","message":"no"}}\n\ndata: [DONE]\n\ndata: {"half';
    upstream.always(respond({ headers: { 'content-type': 'text/event-stream' }, body }));
    const answer = await gateway.call('/v1/chat/completions', { key, body: ask({ stream: true }) });
    expect(answer.text).to.equal(body);
  });

  it('can compress its answer unasked, and the gateway decodes it', async () => {
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

  it('is paid for a stream that has the final event of its protocol but no stop reason', async () => {
    const whole = chatStream({ texts: ['one'], usage: USAGE, withUsage: true });
    const body = whole.events.join('').replaceAll('"finish_reason":"stop"', '"finish_reason":null');
    upstream.next(respond({ headers: { 'content-type': 'text/event-stream' }, body }));
    const answer = await call('chat', { stream: true });
    expect(answer.text.trimEnd().endsWith('data: [DONE]')).to.equal(true);
    expect(await recordOf(answer)).to.include({ billing: 'actual', cost: '0.00600000' });
  });

  // The gateway reads both calls for 10 s more.
  it('is disconnected when it continues without content after its clients have disconnected', expectNothingHeld);
});

/** Sends the same bytes as fast as the other side reads them. */
function flood(socket: Socket, bytes: string): void {
  const many = Buffer.from(bytes.repeat(Math.ceil(65_536 / bytes.length)), 'latin1');
  const send = () => {
    while (!socket.destroyed && socket.write(many));
  };
  socket.on('drain', send);
  send();
}

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
