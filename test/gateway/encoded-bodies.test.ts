import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { ask, askIn, PATH, PROTOCOLS } from '../support/calls';
import { answerOf } from '../support/dialects';
import { MODEL, startGateway, type TestGateway } from '../support/gateway';
import { messagesAnswer, startUpstream, type TestUpstream } from '../support/upstream';
import { COMPRESSED_CALL, zstdBomb, zstdOf } from '../support/zstd';

const ENCODE: Readonly<Record<string, (content: Buffer) => Buffer>> = {
  gzip: (content) => gzipSync(content),
  'X-Gzip ': (content) => gzipSync(content),
  deflate: (content) => deflateSync(content),
  br: (content) => brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  zstd: zstdOf,
};
const LARGEST_BYTES = 20_971_520;
/** The largest accepted lag. It is far above that of a busy machine; decoding one bomb in the event loop takes longer. */
const LAG_MS = 2_000;

const NOISE = randomBytes(5_000_000).toString('hex');

/** Returns the body of a call with so many bytes, about half of them noise. */
function callOf(bytes: number): Buffer {
  const frame = JSON.stringify(ask({ messages: [{ role: 'user', content: '@' }] }));
  const [before = '', after = ''] = frame.split('@');
  const content = Buffer.alloc(bytes - frame.length + 1, 'x');
  content.write(NOISE);
  return Buffer.concat([Buffer.from(before), content, Buffer.from(after)]);
}

describe('Encoded bodies', function () {
  this.timeout(120_000);
  let upstream: TestUpstream;
  let gateway: TestGateway;
  let key: string;

  const send = (encoding: string, body: Buffer, of = key, path = PATH.messages) =>
    gateway.call(path, { key: of, body, headers: { 'content-encoding': encoding } });

  before(async () => {
    upstream = await startUpstream();
    const models = { [MODEL]: { context: 10_000_000 } };
    gateway = await startGateway({ upstreams: { acme: { url: upstream.url, models } } });
    ({ key } = await gateway.newCustomer('100000'));
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });
  beforeEach(() => upstream.reset());

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

  it('are accepted from the reference compressor of zstd', async () => {
    upstream.always(messagesAnswer());
    const got = await send('zstd', COMPRESSED_CALL);
    expect(got.status, got.text).to.equal(200);
    expect(JSON.parse(String(upstream.calls[0]?.body)).max_tokens).to.equal(200);
  });

  it('that are broken or cut get 400, and nothing is charged', async () => {
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

  it('in another encoding get 415, and the answer names the accepted ones', async () => {
    const { status, headers, json } = await send('gzip, zstd', gzipSync('{}'));
    expect(status).to.equal(415);
    expect(headers['accept-encoding']).to.equal('gzip, deflate, br, zstd');
    expect(json.error.message).to.include('gzip, deflate, br, zstd');
    const { adminUrl, adminToken } = gateway;
    const own = await fetch(`${adminUrl}/admin/v1/accounts`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${adminToken}`,
        'content-type': 'application/json',
        'content-encoding': 'gzip',
      },
      body: new Uint8Array(gzipSync('{"name":"x"}')),
    });
    expect(own.status).to.equal(415);
  });

  it('are accepted up to 20 MB of decoded size, and get 413 for one byte more', async () => {
    upstream.always(messagesAnswer());
    for (const [encoding, encode] of Object.entries(ENCODE)) {
      const largest = await send(encoding, encode(callOf(LARGEST_BYTES)));
      expect(largest.status, `${encoding}: ${largest.text}`).to.equal(200);
      expect((await send(encoding, encode(callOf(LARGEST_BYTES + 1)))).status, encoding).to.equal(413);
    }
    expect(upstream.calls.map(({ body }) => body.length)).to.deep.equal(Object.keys(ENCODE).map(() => LARGEST_BYTES));
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

  it('that decode to gigabytes get 413 in bounded memory, and other calls are served meanwhile', async () => {
    upstream.always(messagesAnswer());
    const blank = Buffer.alloc(256_000_000, ' ');
    const bombs = {
      zstd: zstdBomb(16_000),
      gzip: gzipSync(blank),
      br: brotliCompressSync(blank.subarray(0, 100_000_000)),
    };
    const before = await residentBytes(gateway.pid);
    let most = 0;
    let lagMs = 0;
    let isOver = false;
    const watching = (async () => {
      while (!isOver) {
        const startedMs = performance.now();
        expect((await fetch(`${gateway.url}/healthz`)).status).to.equal(200);
        lagMs = Math.max(lagMs, performance.now() - startedMs);
        most = Math.max(most, await residentBytes(gateway.pid));
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    })();
    const calls = Object.entries(bombs).flatMap(([encoding, bomb]) =>
      Array.from({ length: 15 }, () => send(encoding, bomb)),
    );
    const statuses = (await Promise.all(calls)).map(({ status, json }) => `${status} ${json.error.code}`);
    isOver = true;
    await watching;
    // A body that may become 20 MB gets 503 while the account's share of the memory is used up.
    for (const status of statuses) expect(status).to.be.oneOf(['413 BODY_TOO_LARGE', '503 OVERLOADED']);
    expect(statuses).to.include('413 BODY_TOO_LARGE');
    expect(most - before).to.be.below(300 * 1024 * 1024);
    expect(lagMs).to.be.below(LAG_MS);
    expect((await send('zstd', COMPRESSED_CALL)).status).to.equal(200);
  });

  it('of 20 MB are served or get 503, in bounded memory, if 30 come at once', async () => {
    upstream.always(messagesAnswer());
    const bodies = { zstd: zstdOf(callOf(LARGEST_BYTES)), gzip: gzipSync(callOf(LARGEST_BYTES)) };
    const before = await residentBytes(gateway.pid);
    let most = 0;
    const watching = setInterval(async () => {
      most = Math.max(most, await residentBytes(gateway.pid));
    }, 50);
    const calls = Object.entries(bodies).flatMap(([encoding, body]) =>
      Array.from({ length: 15 }, () => send(encoding, body)),
    );
    const statuses = (await Promise.all(calls)).map(({ status }) => status);
    clearInterval(watching);
    expect(
      statuses.every((status) => status === 200 || status === 503),
      statuses.join(' '),
    ).to.equal(true);
    expect(statuses).to.include(200);
    expect(most - before).to.be.below(600 * 1024 * 1024);
    expect((await send('gzip', bodies.gzip)).status).to.equal(200);
  });
});

async function residentBytes(pid: number): Promise<number> {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1_024;
}
