import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { expect } from 'chai';
import { request } from 'undici';
import { ask, askIn, PATH, PROTOCOLS } from '../support/calls';
import { startGateway, type TestGateway } from '../support/gateway';
import { held, PROBED } from '../support/held';
import { until } from '../support/until';

const ANSWER = JSON.stringify({ type: 'message', content: [], usage: { input_tokens: 10, output_tokens: 5 } });
const BYTES = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte));

describe('An upstream that answers with hostile bytes', function () {
  this.timeout(120_000);
  let respond: (socket: Socket) => void;
  let upstream: Server;
  let gateway: TestGateway;
  let key: string;

  before(async () => {
    upstream = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => respond(socket));
    });
    await new Promise<void>((done) => upstream.listen(0, '127.0.0.1', done));
    const { port } = upstream.address() as AddressInfo;
    gateway = await startGateway({
      upstreams: { acme: { url: `http://127.0.0.1:${port}` } },
      env: PROBED,
      configure: (config) => {
        for (const pipeline of Object.values(config['pipelines']) as { policies: Record<string, unknown>[] }[])
          for (const step of pipeline.policies) {
            if ('failover' in step) step['failover'] = [{ action: { maxAttempts: 1, sameUpstreamRetries: 0 } }];
            if ('model-request' in step)
              step['model-request'] = [{ action: { forwardHeaderPrefixes: ['anthropic-', 'x-passed-'] } }];
          }
      },
    });
    ({ key } = await gateway.newCustomer('1000'));
  });
  after(async () => {
    await gateway?.stop();
    upstream?.close();
  });

  const say = (bytes: string) => {
    respond = (socket) => socket.end(Buffer.from(bytes, 'latin1'));
  };

  const statusOf = async (bytes: string, stream = false): Promise<number> => {
    say(bytes);
    return (await gateway.call('/v1/messages', { key, body: ask({ stream }) })).status;
  };

  const expectNothingHeld = () =>
    until('nothing is held', async () => (await gateway.balance(key)).heldUsd === '0.00000000', 30_000);

  it('never leaves its caller without an answer, whatever its status is', async () => {
    for (let status = 0; status < 1_000; status += 1) {
      const said = `HTTP/1.1 ${String(status).padStart(3, '0')} Said\r\ncontent-length: 2\r\n\r\n{}`;
      expect(await statusOf(said, status % 2 === 0), String(status)).to.be.within(200, 999);
    }
    await expectNothingHeld();
  });

  for (const [where, sayWith] of [
    ['the reason phrase', (byte: string) => `HTTP/1.1 200 O${byte}K\r\n`],
    ['a relayed header', (byte: string) => `HTTP/1.1 200 OK\r\nx-passed-a: b${byte}c\r\n`],
    ["a relayed header's name", (byte: string) => `HTTP/1.1 200 OK\r\nx-passed-${byte}b: c\r\n`],
    ['the content type', (byte: string) => `HTTP/1.1 200 OK\r\ncontent-type: b${byte}c\r\n`],
  ] as const) {
    it(`never leaves its caller without an answer, whatever byte ${where} has`, async () => {
      for (const byte of BYTES) {
        const said = `${sayWith(byte)}content-length: ${ANSWER.length}\r\n\r\n${ANSWER}`;
        expect(await statusOf(said), JSON.stringify(byte)).to.be.oneOf([200, 502]);
      }
      await expectNothingHeld();
    });
  }

  it('never leaves its caller without an answer, whatever byte the location of a redirect has', async () => {
    for (const byte of BYTES) {
      const said = `HTTP/1.1 302 Found\r\nlocation: /b${byte}c\r\ncontent-length: 0\r\n\r\n`;
      expect(await statusOf(said), JSON.stringify(byte)).to.be.oneOf([302, 502]);
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
      it(`never leaves its caller without an answer when it sends ${title}, ${stream ? 'streamed' : 'unstreamed'}`, async () => {
        expect(await statusOf(said, stream)).to.be.oneOf([...expected]);
        await expectNothingHeld();
      });
    }
  }

  it('is disconnected when its interim answers do not end', async () => {
    respond = (socket) => flood(socket, 'HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n');
    const answer = await gateway.call('/v1/messages', { key, body: ask() });
    expect([answer.status, answer.json.error.code]).to.deep.equal([502, 'ALL_PROVIDERS_FAILED']);
  });

  for (const protocol of PROTOCOLS) {
    it(`is relayed once its preamble has 256 KB without any content (${protocol})`, async () => {
      respond = (socket) => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n');
        flood(socket, `: ${'x'.repeat(1_000)}\n\n`);
      };
      const before = await held(gateway);
      const leaving = new AbortController();
      const { statusCode, body } = await request(`${gateway.url}${PATH[protocol]}`, {
        method: 'POST',
        headers: { 'x-api-key': key, 'content-type': 'application/json' },
        body: JSON.stringify(askIn(protocol, { stream: true })),
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

  // The gateway reads both calls for 10 s more.
  it('is disconnected when it continues without content after its callers have disconnected', expectNothingHeld);
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
