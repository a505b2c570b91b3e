import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { ask, askIn, PATH, PROTOCOLS } from '../support/calls';
import { answerOf } from '../support/dialects';
import { type Answered, MODEL, type TestGateway } from '../support/gateway';
import { statusOf } from '../support/raw';
import { createSandbox, creation, SANDBOX_GATEWAY, terminate, waitForState } from '../support/sandboxes';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer } from '../support/upstream';
import { COMPRESSED_CALL, zstdBomb, zstdOf } from '../support/zstd';

const MAX_BYTES = 20_971_520;
const ONE_MORE = Buffer.alloc(MAX_BYTES + 1, 0x20);
const MIB = 1_048_576;
/** The largest accepted lag. It is far above that of a busy machine; decoding one bomb in the event loop takes longer. */
const LAG_MS = 2_000;
const NO_SANDBOX = '/v1/sandboxes/019a9d5e-3c5c-7a52-8f7e-0d4f6a1b2c3d';

const ENCODE: Readonly<Record<string, (content: Buffer) => Buffer>> = {
  gzip: (content) => gzipSync(content),
  'X-Gzip ': (content) => gzipSync(content),
  deflate: (content) => deflateSync(content),
  br: (content) => brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  zstd: zstdOf,
};

const NOISE = randomBytes(5_000_000).toString('hex');

/** Returns the body of a call with so many bytes. Half of them are noise, because bodies that shrink too much are refused. */
function bodyOf(bytes: number): Buffer {
  const [before = '', after = ''] = JSON.stringify(ask({ messages: [{ role: 'user', content: '@' }] })).split('@');
  const content = Buffer.alloc(bytes - before.length - after.length, 'x');
  content.write(NOISE);
  return Buffer.concat([Buffer.from(before), content, Buffer.from(after)]);
}

/** How a plain client of Node sends a body, and whether it keeps its connection. */
interface Sending {
  readonly announced: boolean;
  readonly closes: boolean;
}

const SENDINGS: readonly Sending[] = [true, false].flatMap((announced) =>
  [true, false].map((closes) => ({ announced, closes })),
);

const named = ({ announced, closes }: Sending) =>
  `${announced ? 'announced' : 'in chunks'}, on a connection that is ${closes ? 'closed after it' : 'kept'}`;

interface Upload extends Sending {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

/** Sends a whole body, whatever comes back, and returns the answer. Rejects if the connection breaks. */
function upload({
  url,
  headers,
  announced,
  closes,
  body = ONE_MORE,
}: Upload): Promise<{ status: number; code: string }> {
  return new Promise((resolve, reject) => {
    const length = announced ? { 'content-length': String(body.length) } : { 'transfer-encoding': 'chunked' };
    const connection = closes ? 'close' : 'keep-alive';
    const all = { 'content-type': 'application/json', ...headers, ...length, connection };
    const call = request(url, { method: 'POST', agent: false, headers: all }, (response) => {
      text(response).then(
        (answer) => resolve({ status: response.statusCode ?? 0, code: JSON.parse(answer).error.code }),
        reject,
      );
    });
    call.once('error', reject);
    call.end(body);
  });
}

const NONSENSE = Buffer.alloc(MAX_BYTES, 0x78);

interface NeverEnding {
  readonly how: string;
  readonly head: string;
  readonly piece: string;
}

const NEVER_ENDING: readonly NeverEnding[] = [
  { how: 'drips an announced body', head: `content-length: ${ONE_MORE.length}`, piece: 'x' },
  { how: 'drips chunks', head: 'transfer-encoding: chunked', piece: '1\r\nx\r\n' },
  {
    how: 'floods with chunks',
    head: 'transfer-encoding: chunked',
    piece: `10000\r\n${'x'.repeat(65_536)}\r\n`,
  },
  { how: 'drips what is not HTTP', head: 'x y: z', piece: 'x' },
  { how: 'floods with what is not HTTP', head: 'x y: z', piece: 'x'.repeat(65_536) },
];

async function neverEnd(url: string, { how, head, piece }: NeverEnding): Promise<void> {
  const socket = open(url, `POST /v1/messages HTTP/1.1\r\nhost: x\r\n${head}\r\n\r\n`);
  let answer = '';
  socket.on('data', (chunk) => (answer += String(chunk)));
  const sending = setInterval(() => socket.writableLength < 1_000_000 && socket.write(piece), 10);
  try {
    await until(`it ${how} and is answered`, () => answer.includes('}}'));
    expect(statusOf(answer), how).to.be.oneOf([400, 401]);
    await until(`it ${how} and is disconnected`, () => socket.destroyed, 30_000);
  } finally {
    clearInterval(sending);
    socket.destroy();
  }
}

/** Connects a client that continues to send after the gateway has ended its side. A disconnect gives it a reset. */
function open(url: string, bytes: string): Socket {
  const at = { port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true };
  const socket = connect(at, () => socket.write(bytes));
  return socket.on('error', () => undefined);
}

/** Returns the CPU time of the gateway's main thread. Other programs do not count, and no single block can be longer than the increase. */
function cpuMs({ pid }: TestGateway): number {
  const [nanoseconds] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ');
  return Number(nanoseconds) / 1e6;
}

function residentBytes({ pid }: TestGateway): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1_024;
}

function chunkOf(content: string): string {
  return `${content.length.toString(16)}\r\n${content}\r\n`;
}

/** A request whose announced body is never sent, except for its first bytes. */
interface Unfinished {
  readonly socket: Socket;
  /** The status of the answer; undefined while there is none. */
  status(): number | undefined;
}

describe('Large bodies', function () {
  this.timeout(120_000);
  const upstream = useUpstream();
  const gateway = useGateway(() => ({
    own: true,
    ...SANDBOX_GATEWAY,
    upstreams: { acme: { url: upstream.url, models: { [MODEL]: { context: 10_000_000 } } } },
  }));
  let key: string;
  let sandbox: string;
  /** Clients that never end their bodies. They start first and are asserted last, because the gateway disconnects them after some seconds. */
  let neverEnding: Promise<unknown>;
  const begun: Socket[] = [];

  before(async () => {
    ({ key } = await gateway.newCustomer('100000'));
    ({ id: sandbox } = await createSandbox(gateway, key, creation('bodies')));
    await waitForState(gateway, key, sandbox, 'RUNNING');
    const urls = [gateway.url, gateway.adminUrl];
    neverEnding = Promise.all(urls.flatMap((url) => NEVER_ENDING.map((way) => neverEnd(url, way))));
    neverEnding.catch(() => undefined);
  });
  beforeEach(() => {
    upstream.reset();
    upstream.always(messagesAnswer());
  });
  afterEach(() => {
    for (const socket of begun.splice(0)) socket.destroy();
  });
  after(() => terminate(gateway, key, sandbox));

  /** Sends the head and the first bytes of a request. */
  function begin(
    of: string,
    framing = `content-length: ${MAX_BYTES}`,
    sent: string | Buffer = '{',
    target = 'POST /v1/messages',
  ): Unfinished {
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    begun.push(socket);
    let answer = '';
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => (answer += String(chunk)));
    const head = [`${target} HTTP/1.1`, 'Host: x', `x-api-key: ${of}`, 'content-type: application/json', framing];
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    socket.write(sent);
    return { socket, status: () => (answer.includes('\r\n\r\n') ? statusOf(answer) : undefined) };
  }
  const answered = (post: Unfinished) => until('an answer', () => post.status(), 100_000);
  /** Sends a whole body, up to the answer. */
  const whole = async (body: Buffer) => {
    const post = begin(key, `content-length: ${body.length}`, body);
    return answered(post).finally(() => post.socket.destroy());
  };
  const send = (encoding: string, body: Buffer, of = key, path = PATH.messages) =>
    gateway.call(path, { key: of, body, headers: { 'content-encoding': encoding } });

  /** Runs calls and returns by how many bytes the process has grown meanwhile at most, and how late other calls were answered. */
  async function watched<T>(work: () => Promise<T>): Promise<{ result: T; grownBytes: number; lagMs: number }> {
    const before = residentBytes(gateway);
    let [most, lagMs, isOver] = [0, 0, false];
    const watching = (async () => {
      while (!isOver) {
        const startedMs = performance.now();
        expect((await fetch(`${gateway.url}/healthz`)).status).to.equal(200);
        lagMs = Math.max(lagMs, performance.now() - startedMs);
        most = Math.max(most, residentBytes(gateway));
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    })();
    const result = await work().finally(() => (isOver = true));
    await watching;
    return { result, grownBytes: most - before, lagMs };
  }

  it('of 20 MB are accepted, and one byte more gets 413, with Content-Length or in chunks', async () => {
    const largest = await gateway.call('/v1/messages', { key, body: bodyOf(MAX_BYTES) });
    expect(largest.status, largest.text).to.equal(200);
    expect(upstream.calls[0]?.body).to.have.length(MAX_BYTES);
    const oneMore = bodyOf(MAX_BYTES + 1);
    expect((await gateway.call('/v1/messages', { key, body: oneMore })).status).to.equal(413);
    const chunked = await fetch(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: new Blob([new Uint8Array(oneMore)]).stream(),
      duplex: 'half',
    } as RequestInit);
    expect(chunked.status).to.equal(413);
    expect(upstream.calls).to.have.length(1);
  });

  it('of 20 MB are served or get 503 in bounded memory if 50 arrive at once, and small calls are served meanwhile', async () => {
    const body = bodyOf(MAX_BYTES);
    const { result, grownBytes } = await watched(async () => {
      const posts = Array.from({ length: 50 }, () => whole(body));
      const small = await gateway.call('/v1/messages', { key, body: ask() });
      expect(small.status, small.text).to.be.oneOf([200, 503]);
      return Promise.all(posts);
    });
    expect(result.filter((status) => status !== 200 && status !== 503)).to.deep.equal([]);
    // As many bodies as fit into the account's share are served. None is refused halfway for a later one.
    expect(result.filter((status) => status === 200)).to.have.length.at.least(3);
    expect(grownBytes).to.be.below(500 * MIB);
    expect((await gateway.call('/v1/messages', { key, body: ask() })).status).to.equal(200);
  });

  describe('that arrive slowly', () => {
    it('leave room for other customers: 13 large bodies of one account do not block 100 KB of another', async () => {
      const { key: greedy } = await gateway.newCustomer('100');
      const posts = Array.from({ length: 13 }, () => begin(greedy));
      await until('ten refusals', () => posts.filter((post) => post.status() === 503).length === 10 || undefined);
      const other = await gateway.call('/v1/messages', { key, body: bodyOf(100_000) });
      expect(other.status, other.text).to.equal(200);
      const own = await gateway.call('/v1/messages', { key: greedy, body: bodyOf(100_000) });
      expect(own.status, own.text).to.equal(200);
      expect(posts.filter((post) => post.status() === undefined)).to.have.length(3);
    });

    it('from a customer without money get 402 before the whole body has arrived', async () => {
      const { key: penniless } = await gateway.newCustomer('0');
      expect(await answered(begin(penniless))).to.equal(402);
      expect(await answered(begin(penniless, 'content-length: 65537', ''))).to.equal(402);
    });

    it('are refused before the whole body has arrived if the key has spent its limit or the account is frozen', async () => {
      const limited = await gateway.newCustomer('10', { balanceLimit: '0' });
      expect(await answered(begin(limited.key))).to.equal(402);
      const frozen = await gateway.newCustomer('10');
      await gateway.admin('POST', `/admin/v1/accounts/${frozen.accountId}/freeze`, {});
      expect(await answered(begin(frozen.key))).to.equal(403);
    });

    it('in chunks get 402 from a customer without money only after 64 KB', async () => {
      const { key: penniless } = await gateway.newCustomer('0');
      const start = chunkOf(`{"x":"${'x'.repeat(60_000)}`);
      const post = begin(penniless, 'transfer-encoding: chunked', start);
      // This call is answered after the chunk has arrived.
      expect((await gateway.call('/v1/messages', { key, body: ask() })).status).to.equal(200);
      expect(post.status()).to.equal(undefined);
      post.socket.write(chunkOf('x'.repeat(10_000)));
      expect(await answered(post)).to.equal(402);
    });

    it('in chunks are accepted completely from a customer with money', async () => {
      const body = bodyOf(1_000_000).toString();
      const post = begin(key, 'transfer-encoding: chunked', `${chunkOf(body)}0\r\n\r\n`);
      expect(await answered(post)).to.equal(200);
    });
  });

  describe('that are encoded', () => {
    for (const protocol of PROTOCOLS)
      it(`of ${protocol} calls reach the upstream decoded, and cost the same as plain ones`, async () => {
        const body = Buffer.from(JSON.stringify(askIn(protocol, { metadata: { user_id: 'Grüße' } })));
        const answer = answerOf[protocol]();
        upstream.always(answer);
        const plain = await gateway.call(PATH[protocol], { key, body });
        for (const [encoding, encode] of Object.entries(ENCODE)) {
          upstream.reset();
          upstream.always(answer);
          const got = await send(encoding, encode(body), key, PATH[protocol]);
          expect(got.status, `${encoding}: ${got.text}`).to.equal(200);
          const [call] = upstream.calls;
          expect(String(call?.body)).to.equal(body.toString());
          expect(call?.headers).not.to.have.property('content-encoding');
          expect(call?.headers['content-length']).to.equal(String(body.length));
          expect(got.headers['x-ai-cost']).to.equal(plain.headers['x-ai-cost']);
        }
      });

    it('that are broken or truncated get 400, and nothing is charged', async () => {
      const poor = await gateway.newCustomer('1');
      const body = Buffer.from(JSON.stringify(ask()));
      for (const [encoding, encode] of Object.entries(ENCODE)) {
        const whole = encode(body);
        for (const broken of [whole.subarray(0, whole.length - 3), body]) {
          const { status, json } = await send(encoding, broken, poor.key);
          expect(status).to.equal(400);
          expect(json.error).to.include({ code: 'INVALID_FIELD', param: 'content-encoding' });
          expect(json.error.message).to.match(/^The body is not complete and valid (gzip|deflate|br|zstd), which /);
        }
      }
      const { json } = await gateway.admin('GET', `/admin/v1/accounts/${poor.accountId}`);
      expect(JSON.stringify(json)).to.include('1.00000000');
      expect(upstream.calls).to.have.length(0);
    });

    it('are accepted up to 20 MB of decoded size, and get 413 for one byte more', async () => {
      upstream.always(messagesAnswer());
      for (const [encoding, encode] of Object.entries(ENCODE)) {
        const largest = await send(encoding, encode(bodyOf(MAX_BYTES)));
        expect(largest.status, `${encoding}: ${largest.text}`).to.equal(200);
        expect((await send(encoding, encode(bodyOf(MAX_BYTES + 1)))).status, encoding).to.equal(413);
      }
      expect(upstream.calls.map(({ body }) => body.length)).to.deep.equal(Object.keys(ENCODE).map(() => MAX_BYTES));
    });

    it('of a customer without money get 402 once more than 64 KB are decoded', async () => {
      const { key: penniless } = await gateway.newCustomer('0');
      for (const [encoding, encode] of Object.entries(ENCODE)) {
        const answer = await send(
          encoding,
          encode(Buffer.concat([Buffer.from('{"x":"'), Buffer.alloc(200_000, 'x')])),
          penniless,
        );
        expect(answer.status, encoding).to.equal(402);
      }
    });

    it('are accepted from the reference compressor of zstd', async () => {
      const got = await send('zstd', COMPRESSED_CALL);
      expect(got.status, got.text).to.equal(200);
      expect(JSON.parse(String(upstream.calls[0]?.body)).max_tokens).to.equal(200);
    });

    it('in another encoding get 415, and the answer names the accepted ones', async () => {
      for (const encoding of ['compress', 'gzip, zstd', 'gzip;q=1', '']) {
        const { status, headers, json } = await send(encoding, gzipSync('{}'));
        expect(status, encoding).to.equal(415);
        expect(headers['accept-encoding']).to.equal('gzip, deflate, br, zstd');
        expect(json.error.message).to.include('gzip, deflate, br, zstd');
      }
      const own = await gateway.admin('POST', '/admin/v1/accounts', { name: 'x' }, { 'content-encoding': 'gzip' });
      expect(own.status).to.equal(415);
    });

    it('that decode to gigabytes get 413 in bounded memory, and other calls are served meanwhile', async () => {
      const blank = Buffer.alloc(256_000_000, ' ');
      const bombs = {
        zstd: zstdBomb(16_000),
        gzip: gzipSync(blank),
        br: brotliCompressSync(blank.subarray(0, 100_000_000)),
      };
      const { result, grownBytes, lagMs } = await watched(() =>
        Promise.all(
          Object.entries(bombs).flatMap(([encoding, bomb]) => Array.from({ length: 15 }, () => send(encoding, bomb))),
        ),
      );
      const statuses = result.map(({ status, json }) => `${status} ${json.error.code}`);
      // A body that may become 20 MB gets 503 while the account's share of the memory is used up.
      for (const status of statuses) expect(status).to.match(/^413 BODY_TOO_LARGE$|^503 /);
      expect(statuses).to.include('413 BODY_TOO_LARGE');
      expect(grownBytes).to.be.below(300 * MIB);
      expect(lagMs).to.be.below(LAG_MS);
      expect((await send('zstd', COMPRESSED_CALL)).status).to.equal(200);
    });
  });

  describe('that are refused before they have arrived', () => {
    for (const sending of SENDINGS)
      it(`get the status and code of their error: ${named(sending)}`, async () => {
        const { url, adminUrl } = gateway;
        const admin = { authorization: `Bearer ${gateway.adminToken}` };
        const cases = [
          [`${url}/v1/messages`, {}, 401, 'INVALID_API_KEY'],
          [`${url}/v1/messages`, { 'x-api-key': key, 'content-type': 'text/plain' }, 415, 'UNSUPPORTED_MEDIA_TYPE'],
          [`${url}/v1/messages`, { 'x-api-key': key }, 413, 'BODY_TOO_LARGE'],
          [`${url}/v1/nothing`, { 'x-api-key': key }, 404, 'NOT_FOUND'],
          [`${url}/v1/usage`, { 'x-api-key': key }, 405, 'METHOD_NOT_ALLOWED'],
          [`${adminUrl}/admin/v1/accounts`, admin, 413, 'BODY_TOO_LARGE'],
        ] as const;
        for (const [target, headers, status, code] of cases)
          for (let each = 0; each < 3; each += 1)
            expect(await upload({ ...sending, url: target, headers }), target).to.deep.equal({ status, code });
        const nonsense = { ...sending, url: `${url}/v1/messages`, headers: { 'x-api-key': key }, body: NONSENSE };
        expect(await upload(nonsense)).to.deep.equal({ status: 400, code: 'INVALID_JSON' });
      });

    it('get 431 if the head of their request is too large, however many bytes the client sends', async () => {
      for (const url of [gateway.url, gateway.adminUrl]) {
        const socket = open(url, `GET / HTTP/1.1\r\nhost: x\r\nx: ${'a'.repeat(MAX_BYTES)}\r\n\r\n`);
        let answer = '';
        socket.on('data', (chunk) => (answer += String(chunk)));
        expect(await until('an answer', () => statusOf(answer) || undefined, 30_000)).to.equal(431);
        socket.destroy();
      }
    });

    it('are answered at once, and a client whose body never ends is disconnected later', () => neverEnding);
  });

  describe("of the gateway's own API", () => {
    const post = (path: string, body: string) => gateway.call(`/v1/sandboxes/${sandbox}${path}`, { key, body });

    function expectSmallRefusal(answer: Answered, code: string): void {
      expect(answer.status, answer.text.slice(0, 500)).to.equal(400);
      expect(answer.json.error.code).to.equal(code);
      expect(answer.text.length).to.be.below(8_192);
      expect(answer.json.error.details.problems ?? []).to.have.lengthOf.at.most(10);
    }

    for (const target of ['PUT /files/content?path=a', 'POST /commands', 'POST /suspend'])
      it(`get 404 before they arrive for a sandbox that does not exist: ${target}`, async () => {
        const { key: penniless } = await gateway.newCustomer('0');
        const to = target.replace(' /', ` ${NO_SANDBOX}/`);
        expect(await answered(begin(penniless, 'content-length: 1000', '', to))).to.equal(404);
      });

    it('of 8 MB of nested arrays get 400 and a short answer', async () => {
      expectSmallRefusal(await post('/files', '['.repeat(4_000_000) + ']'.repeat(4_000_000)), 'INVALID_JSON');
    });

    it('block the event loop for less than 50 ms, whether they consist of members, environment variables or arrays', async () => {
      const named = (count: number) => Array.from({ length: count }, (_, index) => `"A${index}":1`).join(',');
      const bodies = [
        ['/commands', `{"command":"true","env":{${named(280_000)}}}`],
        ['/files', `{${named(550_000)}}`],
        ['/files', '['.repeat(4_000_000) + ']'.repeat(4_000_000)],
      ] as const;
      for (const [path, body] of bodies) {
        const takenMs: number[] = [];
        for (let tries = 0; tries < 3; tries += 1) {
          const beforeMs = cpuMs(gateway);
          expect((await post(path, body)).status).to.equal(400);
          takenMs.push(cpuMs(gateway) - beforeMs);
        }
        expect(Math.min(...takenMs), path).to.be.below(50);
      }
    });

    it('with 65 levels of JSON get 400, and 64 levels are accepted', async () => {
      const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
      expectSmallRefusal(await post('/files', nested(65)), 'INVALID_JSON');
      expectSmallRefusal(await post('/files', nested(64)), 'INVALID_FIELD');
    });

    it('with 9,000 unknown fields get an error that names the first ten', async () => {
      const fields = Array.from({ length: 9_000 }, (_, index) => `"A${index}":0`);
      const answer = await post('/files', `{${fields.join(',')}}`);
      expectSmallRefusal(answer, 'INVALID_FIELD');
      expect(answer.json.error.details.problems).to.have.length(10);
    });

    it('with a name of 60 KB get an error that shortens the name', async () => {
      const body = { [`${'x'.repeat(60_000)}`]: 1, selection: { ['y'.repeat(1_000)]: 1 } };
      expectSmallRefusal(await gateway.call('/v1/quotes', { key, body }), 'INVALID_FIELD');
      const { ['selection']: selection } = body;
      const asked = await gateway.call('/v1/sandboxes', { key, body: { idempotencyKey: 'a', selection } });
      expectSmallRefusal(asked, 'SELECTION_INVALID');
    });

    it('have the same limits on the admin listener', async () => {
      const fields = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`A${index}`, 0]));
      expectSmallRefusal(await gateway.admin('POST', '/admin/v1/accounts', fields), 'INVALID_FIELD');
    });

    it('of one account use at most a quarter of the memory for bodies, which leaves room for other accounts', async () => {
      const uploads = Array.from({ length: 5 }, () =>
        begin(
          key,
          `content-length: ${MAX_BYTES}`,
          Buffer.alloc(1_000_000, ' '),
          `PUT /v1/sandboxes/${sandbox}/files/content?path=a`,
        ),
      );
      await until('two refusals', () => uploads.filter((each) => each.status() === 503).length === 2 || undefined);
      const { key: other } = await gateway.newCustomer('5');
      const { id: others } = await createSandbox(gateway, other, creation('bodies'));
      await waitForState(gateway, other, others, 'RUNNING');
      const written = await gateway.call(`/v1/sandboxes/${others}/files/content?path=a`, {
        method: 'PUT',
        key: other,
        headers: { 'content-type': 'application/octet-stream' },
        body: Buffer.alloc(1_000_000, 'x'),
      });
      expect(written.status, written.text).to.equal(201);
      await terminate(gateway, other, others);
      expect(uploads.filter((each) => each.status() === undefined)).to.have.length(3);
      for (const { socket } of uploads) socket.destroy();
      // The memory is free again after the uploads have broken off.
      await until('room for a file', async () => {
        const { status } = await gateway.call(`/v1/sandboxes/${sandbox}/files/content?path=a`, {
          method: 'PUT',
          key,
          headers: { 'content-type': 'application/octet-stream' },
          body: Buffer.alloc(MAX_BYTES, 'x'),
        });
        return status === 201 || undefined;
      });
    });
  });
});
