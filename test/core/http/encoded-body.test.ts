import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { BODY_ENCODINGS, type BodyEncoding, brokenBody, FREE_DECODED_BYTES } from '../../../core/http/body-decoder';
import { ClientLeft } from '../../../core/http/client-left';
import { type BodyLimits, readBody } from '../../../core/http/read-body';
import { ZstdByThread } from '../../../core/http/zstd-by-thread';
import { openRequest, refusal } from '../../policies/model-request/support';
import { COMPRESSED_CALL, zstdBomb, zstdOf, zstdOfNothing, zstdWithWindow } from '../../support/zstd';

const ENCODE: Readonly<Record<BodyEncoding, (content: Buffer) => Buffer>> = {
  gzip: (content) => gzipSync(content),
  deflate: (content) => deflateSync(content),
  br: (content) => brotliCompressSync(content),
  zstd: zstdOf,
};
const LIMITS: BodyLimits = { maxBytes: 20_971_520, totalMs: 30_000, slowMs: 10_000, minBytesPerSecond: 100 };
/** Bytes that do not compress. */
const NOISE = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * index * 2_654_435_761) >>> 24));

interface Read {
  readonly encoding: BodyEncoding;
  readonly limits?: BodyLimits;
  readonly beforeLarge?: () => Promise<void>;
}

function begin({ encoding, limits = LIMITS, beforeLarge }: Read) {
  const request = openRequest();
  let counted = 0;
  const room = {
    add: (bytes: number) => {
      counted += bytes;
    },
  };
  const more = beforeLarge === undefined ? {} : { beforeLarge };
  const result = async () =>
    Buffer.concat([...(await readBody(request, { limits, room, encoded: { encoding, accountId: 'one' }, ...more }))]);
  return { request, result: result(), counted: () => counted };
}

function read(sent: Buffer, options: Read & { readonly pieceBytes?: number }) {
  const reading = begin(options);
  const pieceBytes = options.pieceBytes ?? sent.length;
  for (let at = 0; at < sent.length; at += pieceBytes) reading.request.write(sent.subarray(at, at + pieceBytes));
  reading.request.end();
  return reading;
}

describe('an encoded body', function () {
  this.timeout(30_000);

  for (const encoding of BODY_ENCODINGS) {
    describe(`a body encoded in ${encoding}`, () => {
      const encode = ENCODE[encoding];

      it('is decoded, however small the pieces in which it arrives', async () => {
        const content = Buffer.from('{"x":"Grüße"}');
        assert.equal((await read(encode(content), { encoding, pieceBytes: 1 }).result).toString(), content.toString());
        assert((await read(encode(NOISE), { encoding, pieceBytes: 1_000 }).result).equals(NOISE));
      });

      it('gets INVALID_FIELD when it is truncated at any byte', async () => {
        const whole = encode(Buffer.from('{"x":"a body that is long enough to be cut"}'));
        for (const length of [1, 5, Math.floor(whole.length / 2), whole.length - 1])
          assert.equal(
            await refusal(read(whole.subarray(0, length), { encoding }).result),
            'INVALID_FIELD content-encoding',
            `${length} of ${whole.length} bytes`,
          );
      });

      it('gets INVALID_FIELD when it is not in this encoding, and the next valid body is decoded', async () => {
        for (const other of ['{"model":"acme-large","max_tokens":200}', '\u0000'.repeat(100), 'x'.repeat(200_000)])
          assert.equal(
            await refusal(read(Buffer.from(other), { encoding }).result),
            'INVALID_FIELD content-encoding',
            other.slice(0, 40),
          );
        assert((await read(encode(NOISE), { encoding }).result).equals(NOISE));
      });

      it('is refused when its encoded or decoded size exceeds the limit', async () => {
        const limits = { ...LIMITS, maxBytes: NOISE.length };
        assert.equal(await refusal(read(encode(NOISE.subarray(0, 1_000)), { encoding, limits }).result), 'accepted');
        const small = { ...LIMITS, maxBytes: NOISE.length - 1 };
        assert.equal(await refusal(read(encode(NOISE), { encoding, limits: small }).result), 'BODY_TOO_LARGE');
      });

      it('counts towards the memory limit of the process in both its encoded and its decoded size', async () => {
        const sent = encode(NOISE);
        const reading = read(sent, { encoding });
        await reading.result;
        assert.equal(reading.counted(), NOISE.length + sent.length);
      });

      it('is refused before more than 64 KB of it are buffered if the account has no money', async () => {
        const { result } = read(encode(Buffer.alloc(200_000, 'x')), {
          encoding,
          beforeLarge: () => Promise.reject(new Error('no money')),
        });
        await assert.rejects(result, /no money/);
      });

      it('is no longer read when the client disconnects', async () => {
        const { request, result } = begin({ encoding });
        request.write(encode(NOISE).subarray(0, 1_000));
        await sleep(20);
        request.destroy();
        await assert.rejects(result, ClientLeft);
      });

      it('is refused when it arrives too slowly', async () => {
        const limits = { ...LIMITS, slowMs: 100, totalMs: 60_000 };
        const { request, result } = begin({ encoding, limits });
        request.write(encode(NOISE).subarray(0, 5));
        assert.equal(await refusal(result), 'BODY_TIMEOUT');
      });
    });
  }

  const BOMBS: Readonly<Record<BodyEncoding, Buffer>> = {
    gzip: gzipSync(Buffer.alloc(20_000_000, ' ')),
    deflate: deflateSync(Buffer.alloc(20_000_000, ' ')),
    br: brotliCompressSync(Buffer.alloc(20_000_000, ' ')),
    zstd: zstdBomb(16_000),
  };
  for (const encoding of BODY_ENCODINGS)
    it(`in ${encoding} that expands too much is refused early, before much of it is in memory`, async () => {
      const { result, counted } = read(BOMBS[encoding], { encoding });
      assert.equal(await refusal(result), 'BODY_TOO_LARGE');
      const allowed = Math.max(FREE_DECODED_BYTES, 100 * BOMBS[encoding].length);
      assert(counted() <= allowed + BOMBS[encoding].length, `${counted()} bytes`);
    });

  it('may expand from a few bytes to a megabyte', async () => {
    const content = Buffer.alloc(FREE_DECODED_BYTES, ' ');
    for (const encoding of ['gzip', 'deflate', 'br'] as const)
      assert.equal((await read(ENCODE[encoding](content), { encoding }).result).length, content.length, encoding);
    assert.equal((await read(zstdBomb(8), { encoding: 'zstd' }).result).length, content.length);
    assert.equal(await refusal(read(zstdBomb(9), { encoding: 'zstd' }).result), 'BODY_TOO_LARGE');
  });

  it('in zstd is decoded completely, even if the decoder still holds output at the last byte', async () => {
    for (const firstBlock of [1, 1_000, 100_000]) {
      const content = NOISE.subarray(0, firstBlock + 131_072);
      const got = await read(zstdOf(content, firstBlock), { encoding: 'zstd' }).result;
      assert(got.equals(content), `${got.length} of ${content.length} bytes`);
    }
  });

  it('followed by further bytes gets INVALID_FIELD, even if the bytes arrive later', async () => {
    for (const encoding of BODY_ENCODINGS) {
      for (const [pieceBytes, times] of [
        [1, 1],
        [1_000, 1],
        [1_000, 10_000],
      ] as const) {
        const sent = Buffer.concat([ENCODE[encoding](Buffer.from('{}')), Buffer.from('behind the end'.repeat(times))]);
        const { result } = read(sent, { encoding, pieceBytes });
        assert.equal(
          await refusal(result),
          'INVALID_FIELD content-encoding',
          `${encoding} by ${pieceBytes}, ${times} times`,
        );
      }
    }
    const twice = Buffer.concat([zstdOf(Buffer.from('{"x"')), zstdOf(Buffer.from(':1}'))]);
    assert.equal(await refusal(read(twice, { encoding: 'zstd' }).result), 'INVALID_FIELD content-encoding');
  });

  it('in zstd gets INVALID_FIELD if it needs a window of more than 8 MB', async () => {
    const content = Buffer.from('{"x":1}');
    assert((await read(zstdWithWindow(content, 23), { encoding: 'zstd' }).result).equals(content));
    for (const windowLog of [24, 27, 31]) {
      const { result } = read(zstdWithWindow(content, windowLog), { encoding: 'zstd' });
      await assert.rejects(result, { code: 'INVALID_FIELD', message: /window of more than 8 MB/ });
    }
  });

  it('in zstd from a real compressor is decoded, and gets INVALID_FIELD if one bit is changed', async () => {
    const body = JSON.parse((await read(COMPRESSED_CALL, { encoding: 'zstd' }).result).toString());
    assert.equal(body.max_tokens, 200);
    const changed = Buffer.from(COMPRESSED_CALL);
    changed[400] = (changed[400] as number) ^ 1;
    assert.equal(await refusal(read(changed, { encoding: 'zstd' }).result), 'INVALID_FIELD content-encoding');
  });

  it('is decoded concurrently with bodies in other encodings', async () => {
    const all = Array.from({ length: 40 }, (_, index) => {
      const encoding = BODY_ENCODINGS[index % 4] as BodyEncoding;
      const content = NOISE.subarray(0, 1_000 + index * 5_000);
      return read(ENCODE[encoding](content), { encoding }).result.then((got) => got.equals(content));
    });
    assert((await Promise.all(all)).every(Boolean));
  });
});

describe('the decoding of zstd in a thread, for versions of Node without zstd,', function () {
  this.timeout(60_000);

  /** Decodes a body of this account. Resolves with its bytes. */
  async function decode(accountId: string, body: Buffer): Promise<Buffer> {
    const decoder = new ZstdByThread(accountId, () => 20_971_520);
    decoder.end(body);
    return Buffer.concat(await decoder.toArray());
  }

  it('makes a body wait for at most two bodies of another account: the running one and one more', async () => {
    const ended: string[] = [];
    const long = zstdOf(Buffer.alloc(5_000_000, NOISE));
    const note = (accountId: string, body: Buffer) => decode(accountId, body).then(() => ended.push(accountId));
    await Promise.all([...Array.from({ length: 8 }, () => note('one', long)), note('two', zstdOf(NOISE))]);
    assert(ended.indexOf('two') <= 2, ended.join(' '));
  });

  it('refuses a body with more blocks than a compressor writes, and decodes the next body in the same thread', async () => {
    assert.equal((await decode('one', zstdOfNothing(65_536))).length, 0);
    const error = await decode('one', zstdOfNothing(6_000_000)).catch((cause: unknown) => brokenBody('zstd', cause));
    assert(error instanceof Error);
    assert.equal(error.message, 'The zstd body has more than 65536 blocks. Flush its compressor less often.');
    assert((await decode('one', zstdOf(NOISE))).equals(NOISE));
  });

  it('refuses a window of more than 8 MB, even if only the content size implies it', async () => {
    for (const frame of [zstdWithWindow(NOISE, 24), Buffer.from('28b52ffda04154890001000058', 'hex')])
      await assert.rejects(decode('one', frame), { code: 'ZSTD_error_frameParameter_windowTooLarge' });
  });
});
