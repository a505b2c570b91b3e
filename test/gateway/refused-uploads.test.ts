import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateway';
import { statusOf } from '../support/raw';
import { until } from '../support/until';

const LARGEST_BYTES = 20_971_520;
const ONE_MORE = Buffer.alloc(LARGEST_BYTES + 1, 0x20);

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

describe('A client whose body is refused before it has arrived', function () {
  this.timeout(120_000);
  let gateway: TestGateway;
  let key: string;
  /** Clients that never end their bodies. They start first and are asserted last, because the gateway disconnects them after some seconds. */
  let neverEnding: Promise<unknown>;

  before(async () => {
    gateway = await startGateway({ upstreams: { none: { url: 'http://127.0.0.1:9' } } });
    ({ key } = await gateway.newCustomer('10'));
    const urls = [gateway.url, gateway.adminUrl];
    neverEnding = Promise.all(urls.flatMap((url) => NEVER_ENDING.map((way) => neverEnd(url, way))));
    neverEnding.catch(() => undefined);
  });
  after(() => gateway?.stop());

  for (const sending of SENDINGS) {
    const times = sending.closes ? 20 : 5;
    it(`receives 413 in each of ${times} tries if it sends one byte too many: ${named(sending)}`, async () => {
      const call = { ...sending, url: `${gateway.url}/v1/messages`, headers: { 'x-api-key': key } };
      for (let each = 0; each < times; each += 1)
        expect(await upload(call), `upload ${each}`).to.deep.equal({ status: 413, code: 'BODY_TOO_LARGE' });
    });

    it(`receives 401, 404, 405, 413 or 415 with its code: ${named(sending)}`, async () => {
      const { url, adminUrl } = gateway;
      const admin = { authorization: `Bearer ${gateway.adminToken}` };
      const cases = [
        [`${url}/v1/messages`, {}, 401, 'INVALID_API_KEY'],
        [`${url}/v1/messages`, { 'x-api-key': key, 'content-type': 'text/plain' }, 415, 'UNSUPPORTED_MEDIA_TYPE'],
        [`${url}/v1/nothing`, { 'x-api-key': key }, 404, 'NOT_FOUND'],
        [`${url}/v1/usage`, { 'x-api-key': key }, 405, 'METHOD_NOT_ALLOWED'],
        [`${adminUrl}/admin/v1/accounts`, {}, 401, 'INVALID_API_KEY'],
        [`${adminUrl}/admin/v1/accounts`, admin, 413, 'BODY_TOO_LARGE'],
      ] as const;
      for (const [target, headers, status, code] of cases)
        expect(await upload({ ...sending, url: target, headers }), target).to.deep.equal({ status, code });
    });
  }

  it('receives 431 if its head is too large, however much it sends', async () => {
    for (const url of [gateway.url, gateway.adminUrl]) {
      const socket = open(url, `GET / HTTP/1.1\r\nhost: x\r\nx: ${'a'.repeat(LARGEST_BYTES)}\r\n\r\n`);
      expect(statusOf(await text(socket))).to.equal(431);
      socket.destroy();
    }
  });

  it('receives 400 if its JSON is invalid from the first byte on', async () => {
    const body = Buffer.alloc(LARGEST_BYTES, 0x78);
    for (const sending of SENDINGS) {
      const call = { ...sending, url: `${gateway.url}/v1/messages`, headers: { 'x-api-key': key }, body };
      expect(await upload(call), named(sending)).to.deep.equal({ status: 400, code: 'INVALID_JSON' });
    }
  });

  it('is answered at once and disconnected later if its body never ends', () => neverEnding);
});
