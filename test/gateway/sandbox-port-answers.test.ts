import { expect } from 'chai';
import { request } from 'undici';
import { startGateway, type TestGateway } from '../support/gateway';
import { rawRequest, statusOf } from '../support/raw';
import { NODE_INSIDE, OPEN_SANDBOX_GATEWAY, type RunningSandbox, runningSandbox, serve } from '../support/sandboxes';
import { until } from '../support/until';

const PORT = 28_751;
const REFUSED = '502 SUPPLIER_ERROR';

/** The source of a server in the sandbox that answers with exactly the bytes that the path names in base64url. */
const SERVER = `
  require('net').createServer((socket) => {
    socket.on('error', () => {});
    let head = '';
    socket.on('data', (bytes) => {
      head += bytes;
      if (!head.includes('\\r\\n\\r\\n')) return;
      const path = head.split(' ')[1].split('/').pop();
      head = '';
      if (path === 'headers') socket.end('HTTP/1.1 200 OK\\r\\n' + 'x-filler: 12345678901234567890\\r\\n'.repeat(320_000) + '\\r\\n');
      else socket.end(Buffer.from(path, 'base64url'));
    });
  }).listen(${PORT}, '127.0.0.1');
`;

describe('a port whose server sends malformed answers', function () {
  this.timeout(120_000);
  let gateway: TestGateway;
  let box: RunningSandbox;
  let opened: { url: string; headers: Record<string, string> };

  before(async () => {
    gateway = await startGateway(OPEN_SANDBOX_GATEWAY);
    box = await runningSandbox(gateway);
    opened = await serve(box, PORT, SERVER, encoded('HTTP/1.1 200 OK\r\n\r\nup'));
  });

  after(async () => {
    await box.end();
    await gateway.stop();
  });

  const encoded = (bytes: string) => Buffer.from(bytes, 'latin1').toString('base64url');

  const ask = async (path: string) => {
    const { statusCode, headers, body } = await request(opened.url + path, { headers: opened.headers });
    return { status: statusCode, headers, text: await body.text() };
  };

  const answer = (bytes: string) => ask(encoded(bytes));

  const codeOf = ({ status, text }: { status: number; text: string }) =>
    text.startsWith('{') ? `${status} ${JSON.parse(text).error.code}` : String(status);

  const expectAlive = async () => {
    expect(gateway.process.exitCode, gateway.output()).to.equal(null);
    expect((await gateway.call('/healthz', { method: 'GET' })).status).to.equal(200);
  };

  for (const [title, said, expected] of [
    ['gives 502 for a reason phrase with a control character', '200 O\x01K\r\ncontent-length: 0', REFUSED],
    ['gives 502 for a header name with a blank', '200 OK\r\nx-a b: c\r\ncontent-length: 0', REFUSED],
    ['gives 502 for a header value with a control character', '200 OK\r\nx-a: b\x01c\r\ncontent-length: 0', REFUSED],
    ['relays a header value with a byte of Latin-1', '200 OK\r\nx-a: b\xfcc\r\ncontent-length: 0', '200'],
    ['gives 502 for status 600', '600 High\r\ncontent-length: 0', REFUSED],
    ['relays status 599', '599 Highest\r\ncontent-length: 0', '599'],
    ['relays an answer that announces trailers', '200 OK\r\ntrailer: x-a\r\ncontent-length: 2\r\n\r\nok', '200'],
    ['relays a 204 with a body', '204 No Content\r\ntrailer: x-a\r\ncontent-length: 2\r\n\r\nok', '204'],
    ['relays a 304 with a body', '304 Not Modified\r\ncontent-length: 2\r\n\r\nok', '304'],
    ['gives 502 for two lengths', '200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nok', REFUSED],
    ['gives 502 for another protocol', '101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x', REFUSED],
    ['gives 502 for an interim answer alone', '100 Continue', REFUSED],
    [
      'relays what follows an interim answer',
      '103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0',
      '200',
    ],
  ] as const) {
    it(title, async () => {
      expect(codeOf(await answer(`HTTP/1.1 ${said}\r\n\r\n`))).to.equal(expected);
      await expectAlive();
    });
  }

  it('answers 502 if the server sends status 099', async () => {
    expect(codeOf(await answer('HTTP/1.1 099 Low\r\ncontent-length: 0\r\n\r\n'))).to.equal(REFUSED);
  });

  it('answers 502 if the server sends text that is not HTTP, or nothing', async () => {
    for (const said of ['nonsense\r\n\r\n', '']) expect(codeOf(await answer(said))).to.equal(REFUSED);
  });

  it('answers 502 if the server sends ten megabytes of headers', async () => {
    expect(codeOf(await ask('headers'))).to.equal('502 SUPPLIER_ERROR');
    await expectAlive();
  });

  it('answers 502 without any header or body of the malformed answer', async () => {
    const { headers, text } = await answer(
      'HTTP/1.1 200 O\x01K\r\ncontent-encoding: gzip\r\nx-own: 1\r\ncontent-length: 2\r\n\r\nok',
    );
    expect(headers).to.include({ 'x-svc-source': 'platform', 'content-type': 'application/json; charset=utf-8' });
    expect(headers).to.not.have.any.keys('content-encoding', 'x-own', 'x-powered-by');
    expect(JSON.parse(text).error.message).to.be.a('string');
  });

  describe('on an upgrade request', () => {
    const upgrade = (path: string) => {
      const { pathname, host } = new URL(opened.url);
      const headers = { host, connection: 'Upgrade', upgrade: 'websocket', ...opened.headers };
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
      return rawRequest(gateway.url, `GET ${pathname}${path} HTTP/1.1\r\n${lines.join('')}\r\n`);
    };

    it('answers 502 if the answer of the server is not HTTP', async () => {
      for (const line of ['200 O\x01K', '099 Low', '999 High']) {
        const text = await upgrade(encoded(`HTTP/1.1 ${line}\r\ncontent-length: 0\r\n\r\n`));
        expect(statusOf(text), text).to.equal(502);
        expect(text).to.include('SUPPLIER_ERROR');
      }
      expect(statusOf(await upgrade('headers'))).to.equal(502);
      await expectAlive();
    });

    it('relays an answer that refuses the upgrade, with unchanged body and framing', async () => {
      const chunked = await upgrade(
        encoded('HTTP/1.1 403 Forbidden\r\ntransfer-encoding: chunked\r\nx-own: 1\r\n\r\n2\r\nno\r\n0\r\n\r\n'),
      );
      expect(statusOf(chunked)).to.equal(403);
      expect(chunked).to.match(/x-own: 1\r\n/i);
      expect(chunked).to.match(/2\r\nno\r\n0\r\n\r\n$/);
    });

    it('closes the connection if the answer that refuses the upgrade ends early', async () => {
      const text = await upgrade(encoded('HTTP/1.1 403 Forbidden\r\ncontent-length: 5\r\n\r\nno'));
      expect(text.endsWith('no')).to.equal(true);
      await expectAlive();
    });

    it('keeps the gateway running if the server resets the connection after it has switched protocols', async () => {
      const text = await upgrade(
        encoded('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n\x81\x02hi'),
      );
      expect(text).to.match(/^HTTP\/1\.1 101/);
      expect(text).to.not.include('HTTP/1.1 502');
      await expectAlive();
    });
  });

  it('forwards no credentials to the server if the client sends an Expect header', async () => {
    const echo = `require('http').createServer((q, a) => a.end(JSON.stringify(q.headers))).listen(${PORT + 1}, '127.0.0.1')`;
    await box.run(`exec "${NODE_INSIDE}" -e "${echo}"`, { background: true });
    const { url, headers } = (await box.get(`/ports/${PORT + 1}`)).json;
    const { pathname, host } = new URL(url);
    const lines = Object.entries({
      ...headers,
      'x-api-key': box.key,
      host,
      connection: 'close',
      expect: '100-continue',
    });
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    const send = () => rawRequest(gateway.url, `GET ${pathname} HTTP/1.1\r\n${head}\r\n`);
    const text = await until('the server answers', async () => {
      const said = await send();
      return said.includes('HTTP/1.1 200') ? said : undefined;
    });
    expect(text).to.not.include(box.key);
    expect(text).to.not.include(Object.values(headers as Record<string, string>)[0]);
  });
});
