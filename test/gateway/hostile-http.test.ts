import { once } from 'node:events';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { ask } from '../support/calls';
import { startGateway, type TestGateway } from '../support/gateway';
import { linesOf, readMetrics } from '../support/metrics';
import { rawRequest, statusOf } from '../support/raw';
import { until } from '../support/until';
import { messagesAnswer, startUpstream, type TestUpstream } from '../support/upstream';

const BODY = JSON.stringify(ask());

/** The headers of calls whose framing two readers could understand differently. KEY stands for a valid key, BODY for a valid body. */
const FORMS: Readonly<Record<string, readonly string[]>> = {
  'a length and chunks': ['Content-Length: 5', 'Transfer-Encoding: chunked', '', '0', '', ''],
  'chunks and a length': ['Transfer-Encoding: chunked', 'Content-Length: 5', '', '0', '', ''],
  'two different lengths': ['Content-Length: 5', 'Content-Length: 6', '', '123456'],
  'two equal lengths': ['Content-Length: 5', 'Content-Length: 5', '', '12345'],
  'a list of lengths': ['Content-Length: 5, 5', '', '12345'],
  'a length with a sign': ['Content-Length: +5', '', '12345'],
  'a negative length': ['Content-Length: -5', '', '12345'],
  'a hexadecimal length': ['Content-Length: 0x5', '', '12345'],
  'an endless length': ['Content-Length: 99999999999999999999999', '', '12345'],
  'an empty length': ['Content-Length:', '', '12345'],
  'an unknown transfer encoding': ['Transfer-Encoding: xchunked', '', '0', '', ''],
  'chunked that is not last': ['Transfer-Encoding: chunked, identity', '', '0', '', ''],
  'compressed chunks': ['Transfer-Encoding: gzip, chunked', '', 'CHUNKS'],
  'two transfer encodings': ['Transfer-Encoding: identity', 'Transfer-Encoding: chunked', '', 'CHUNKS'],
  'chunked twice': ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked', '', 'CHUNKS'],
  'chunked in quotes': ['Transfer-Encoding: "chunked"', '', 'CHUNKS'],
  'a space before the colon': ['Transfer-Encoding : chunked', '', 'CHUNKS'],
  'a folded header': ['Transfer-Encoding:', ' chunked', '', 'CHUNKS'],
  'a vertical tab': ['Transfer-Encoding: \x0bchunked', '', 'CHUNKS'],
  'a header without colon': ['Content-Length', '', ''],
  'a NUL': ['X: a\0b', 'Content-Length: 0', '', ''],
  'a carriage return alone': ['X: a\rContent-Length: 5', '', '12345'],
  'a line feed alone': ['X: a\nContent-Length: 5', '', '12345'],
  'a chunk size that is no number': ['Transfer-Encoding: chunked', '', 'zz', 'BODY', '0', '', ''],
  'a negative chunk size': ['Transfer-Encoding: chunked', '', '-1', 'BODY', '0', '', ''],
  'a chunk size with 0x': ['Transfer-Encoding: chunked', '', '0x3', 'BODY', '0', '', ''],
  'a chunk size beyond 64 bits': ['Transfer-Encoding: chunked', '', 'fffffffffffffffff1', 'BODY', '0', '', ''],
  'a chunk longer than it says': ['Transfer-Encoding: chunked', '', '3', 'BODY', '0', '', ''],
  'a chunk extension with a line feed': ['Transfer-Encoding: chunked', '', '3;a\nb', 'abc', '0', '', ''],
  'a length after the body': ['Transfer-Encoding: chunked', '', 'CHUNK', '0', 'Content-Length: 5', '', ''],
  'the key for this connection only': ['Connection: x-api-key', 'Content-Length: LENGTH', '', 'BODY'],
  'the credential for this connection only': ['Connection: close, Authorization', 'Content-Length: LENGTH', '', 'BODY'],
  'two credentials': ['Authorization: Bearer KEY', 'Authorization: Bearer KEY', 'Content-Length: LENGTH', '', 'BODY'],
  'two hosts': ['Host: other', 'Content-Length: LENGTH', '', 'BODY'],
};

/** Request targets that are neither a path, nor a whole address of `http` or `https`, nor the `*` of OPTIONS. */
const TARGETS = [
  '*',
  '*x',
  '**',
  '*@127.0.0.1:9/x',
  '*/v1/messages',
  '*x/v1/messages',
  '*x/admin/v1/accounts',
  'http:///v1/messages',
  'http://',
  'http://:80/v1/messages',
  'ftp://x/v1/messages',
  'file:///etc/passwd',
  'http://user@x/v1/messages',
  'http://x/v1/messages#y',
  'http:/v1/messages',
  'v1/messages',
  '@x/v1/messages',
  '?x/v1/messages',
  '#/v1/messages',
  '\\v1/messages',
  '%2fv1/messages',
  '.',
  '\xe9/v1/messages',
  'x:80',
];

function filled(line: string, key: string): string {
  const size = Buffer.byteLength(BODY);
  const chunk = `${size.toString(16)}\r\n${BODY}`;
  const words = { CHUNKS: `${chunk}\r\n0\r\n\r\n`, CHUNK: chunk, BODY, LENGTH: String(size), KEY: key };
  return line.replace(/CHUNKS|CHUNK|BODY|LENGTH|KEY/g, (word) => words[word as keyof typeof words]);
}

describe('Hostile or unusual HTTP', function () {
  this.timeout(90_000);
  let upstream: TestUpstream;
  let gateway: TestGateway;
  let key: string;

  before(async () => {
    upstream = await startUpstream();
    gateway = await startGateway({ upstreams: { acme: { url: upstream.url } } });
    ({ key } = await gateway.newCustomer('10'));
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });
  beforeEach(() => {
    upstream.reset();
    upstream.always(messagesAnswer());
  });

  const head = (version = '1.1') => `POST /v1/messages HTTP/${version}\r\nHost: x\r\ncontent-type: application/json`;

  function expectRefusal(answer: string, status: number, code: string) {
    expect(statusOf(answer), answer).to.equal(status);
    expect(answer.match(/HTTP\/1\.1 \d/g)).to.have.length(1);
    const envelope = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)) as { error: { code: string } };
    expect(envelope.error.code).to.equal(code);
    expect(answer.toLowerCase()).to.include('x-svc-source: platform').and.include('x-svc-request-id: req_');
  }

  for (const [what, lines] of Object.entries(FORMS)) {
    it(`with ${what} gets 400 in the gateway's envelope, and no upstream is asked`, async () => {
      const shown = what === 'two credentials' ? '' : `\r\nx-api-key: ${key}`;
      const rest = lines.map((line) => filled(line, key)).join('\r\n');
      // The bytes after the head must not count as another request.
      const answer = await rawRequest(gateway.url, Buffer.from(`${head()}${shown}\r\n${rest}`, 'latin1'));
      expect(statusOf(answer), answer).to.equal(400);
      expect(answer.match(/HTTP\/1\.1 \d/g)).to.have.length(1);
      expect(answer).to.match(/"code":"(?:MALFORMED_REQUEST|INVALID_FIELD)"/);
      expect(upstream.calls).to.have.length(0);
    });
  }

  describe('with a target that is no path and no whole address', () => {
    const asked = (method: string, target: string, more = '') =>
      `${method} ${target} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;
    const upgrade = 'Connection: upgrade\r\nUpgrade: websocket\r\n';
    const good = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n';
    const refused = /^HTTP\/1\.1 400 .*"code":"(?:MALFORMED_REQUEST|INVALID_FIELD)"/s;

    it('gets 400 at both listeners, also as an upgrade and pipelined', async () => {
      const token = `Authorization: Bearer ${gateway.adminToken}\r\n`;
      const send = (url: string, text: string) => rawRequest(url, Buffer.from(text, 'latin1'));
      const methods = (target: string) => ['GET', 'POST', 'CONNECT', ...(target === '*' ? [] : ['OPTIONS'])];
      const heads = TARGETS.flatMap((target) =>
        methods(target).flatMap((method) => ['', upgrade, token].map((more) => asked(method, target, more))),
      );
      for (const url of [gateway.url, gateway.adminUrl])
        for (const head of heads) {
          expect(await send(url, head), head).to.match(refused);
          const after = await send(url, good + head);
          // A connection whose earlier request is still being answered may end instead.
          const further = [...after.matchAll(/^HTTP\/1\.1 (\d+) /gm)].slice(1).map(([, status]) => status);
          expect(further, head).to.deep.equal(further.length === 0 ? [] : ['400']);
        }
      expect(upstream.calls).to.have.length(0);
    });

    it('is served where it is `*` with OPTIONS, or the whole address of a path', async () => {
      const close = 'Connection: close\r\n';
      expect(statusOf(await rawRequest(gateway.url, asked('OPTIONS', '*', close)))).to.equal(404);
      for (const target of ['http://x/healthz', 'HTTPS://X:443/healthz', 'http://x/healthz?a=http://y/']) {
        expect(statusOf(await rawRequest(gateway.url, asked('GET', target, close))), target).to.equal(200);
      }
    });
  });

  it('of other versions, or with chunks in HTTP/1.0, gets 400', async () => {
    const plain = filled(`\r\nx-api-key: ${key}\r\ncontent-length: LENGTH\r\n\r\nBODY`, key);
    expectRefusal(await rawRequest(gateway.url, head('2.0') + plain), 400, 'MALFORMED_REQUEST');
    expectRefusal(await rawRequest(gateway.url, head('1.2') + plain), 400, 'MALFORMED_REQUEST');
    const chunks = filled(`\r\nx-api-key: ${key}\r\ntransfer-encoding: chunked\r\n\r\nCHUNKS`, key);
    expectRefusal(await rawRequest(gateway.url, head('1.0') + chunks), 400, 'INVALID_FIELD');
    expectRefusal(await rawRequest(gateway.url, 'POST / HTTP/1.1\r\nconnection: close\r\n\r\n'), 400, 'INVALID_FIELD');
    expect(upstream.calls).to.have.length(0);
  });

  it('gets 431 if its head is too large, and 417 for an unknown expectation', async () => {
    const large = `${head()}\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`;
    expectRefusal(await rawRequest(gateway.url, large), 431, 'HEADERS_TOO_LARGE');
    const expecting = `${head()}\r\nexpect: wonders\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`;
    expectRefusal(await rawRequest(gateway.url, expecting), 417, 'EXPECTATION_FAILED');
  });

  it('each refusal before a request was read is counted once and logged', async () => {
    const before = await readMetrics(gateway);
    const large = await rawRequest(gateway.url, `${head()}\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`);
    await rawRequest(gateway.url, 'nonsense\r\n\r\n');
    await rawRequest(gateway.adminUrl, 'nonsense\r\n\r\n');
    await rawRequest(gateway.url, `${head()}\r\nexpect: wonders\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
    const after = await readMetrics(gateway);
    const counted = Object.entries({ HEADERS_TOO_LARGE: 1, MALFORMED_REQUEST: 2, EXPECTATION_FAILED: 1 });
    for (const [code, requests] of counted) {
      const name = `tollgate_api_requests_total{route="broken",method="other",status="4xx",code="${code}"}`;
      expect((after.get(name) ?? 0) - (before.get(name) ?? 0), code).to.equal(requests);
    }
    const requestId = /x-svc-request-id: (\S+)/.exec(large)?.[1];
    const line = await until('its line', () =>
      linesOf(gateway, 'request').find((each) => each['requestId'] === requestId),
    );
    expect(line).to.include({ route: 'broken', status: 431, code: 'HEADERS_TOO_LARGE' });
  });

  it('who asks for the word to go on is given it', async () => {
    const rest = filled(
      `\r\nx-api-key: ${key}\r\nexpect: 100-continue\r\nconnection: close\r\ncontent-length: LENGTH`,
      key,
    );
    const answer = await rawRequest(gateway.url, `${head()}${rest}\r\n\r\n${BODY}`);
    expect(answer).to.match(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK/);
  });

  it('behind a good call on its connection is refused, and the good call is answered as usual', async () => {
    const { key: own } = await gateway.newCustomer('1');
    const good = filled(`${head()}\r\nx-api-key: ${own}\r\ncontent-length: LENGTH\r\n\r\nBODY`, own);
    const answer = await rawRequest(gateway.url, `${good}GARBAGE\r\n\r\n`);
    expect(answer).not.to.match(/HTTP\/1\.1 200.*HTTP\/1\.1 200/s);
    // The gateway may close the connection before the good call has reached the upstream.
    const records = async () => (await gateway.call('/v1/usage', { method: 'GET', key: own })).json.items;
    await until('the good call has its record', async () => (await records()).length === 1);
    expect(upstream.calls.length).to.be.at.most(1);
  });

  it('ten connections with 1,000 pipelined requests without a key each do not keep another client waiting', async () => {
    const { hostname, port } = new URL(gateway.url);
    const refused = 'POST /v1/messages HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}';
    let refusals = 0;
    const floods = await Promise.all(
      Array.from({ length: 10 }, async () => {
        const flood = connect(Number(port), hostname);
        flood.on('data', (piece) => {
          refusals += piece.toString('latin1').split('HTTP/1.1 401').length - 1;
        });
        await once(flood, 'connect');
        return flood;
      }),
    );
    upstream.always(messagesAnswer());
    expect((await gateway.call('/v1/messages', { key, body: BODY })).status).to.equal(200);
    for (const flood of floods) flood.write(refused.repeat(1_000));
    expect((await gateway.call('/v1/messages', { key, body: BODY })).status).to.equal(200);
    const meanwhile = refusals;
    await until('all are answered', () => refusals === 10_000, 30_000);
    expect(meanwhile).to.be.below(2_000);
    for (const flood of floods) flood.destroy();
  });

  it('a body that becomes far more than it was is 413', async () => {
    const bomb = gzipSync(Buffer.alloc(16 * 1024 * 1024, 0x20));
    const answer = await gateway.call('/v1/messages', { key, body: bomb, headers: { 'content-encoding': 'gzip' } });
    expect(answer.status).to.equal(413);
    expect(answer.json.error.code).to.equal('BODY_TOO_LARGE');
    expect(upstream.calls).to.have.length(0);
  });
});
