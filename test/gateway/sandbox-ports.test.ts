import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { request } from 'undici';
import { asDocumented } from '../support/documents';
import { startGateway, type TestGateway } from '../support/gateway';
import { OPEN_SANDBOX_GATEWAY, type RunningSandbox, runningSandbox, serve } from '../support/sandboxes';
import { until } from '../support/until';

describe('a port of a running sandbox', () => {
  let gateway: TestGateway;
  let box: RunningSandbox;
  let opened: { url: string; headers: Record<string, string> };
  const PORT = 28_731;

  const server = `
    const http = require('http');
    const all = http.createServer((request, response) => {
      if (request.url === '/hang') { response.writeHead(200); response.write('begun'); request.socket.on('close', () => require('fs').writeFileSync('left', '')); return; }
      response.setHeader('set-cookie', 'a=b');
      response.setHeader('www-authenticate', 'Basic realm="sign in"');
      response.setHeader('nel', '{}');
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ url: request.url, method: request.method, headers: request.headers }));
    });
    all.on('upgrade', (request, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\nSet-Cookie: a=b\\r\\n\\r\\n' + JSON.stringify(request.headers) + '\\n');
      socket.pipe(socket);
      socket.on('close', () => require('fs').writeFileSync('left-socket', ''));
    });
    all.listen(${PORT}, '127.0.0.1');
  `;

  before(async () => {
    gateway = await asDocumented(await startGateway(OPEN_SANDBOX_GATEWAY));
    box = await runningSandbox(gateway);
    opened = await serve(box, PORT, server);
  });

  after(async () => {
    await box.end();
    await gateway.stop();
  });

  const ask = (path: string, options: object = {}) =>
    request(`${opened.url}${path}`, { headers: opened.headers, ...options });

  it('receives method, path and query unchanged', async () => {
    const { statusCode, body, headers } = await ask('some%20path/x?a=%2F&b', { method: 'POST', body: 'hello' });
    expect(statusCode).to.equal(200);
    expect(await body.json()).to.include({ url: '/some%20path/x?a=%2F&b', method: 'POST' });
    expect(headers['content-security-policy']).to.equal('sandbox');
  });

  it('receives no credentials and cookies of the client, and cannot set cookies', async () => {
    const { body, headers } = await ask('', {
      headers: {
        ...opened.headers,
        cookie: 'session=1',
        authorization: 'Bearer x',
        'x-api-key': box.key,
        forwarded: 'for=192.0.2.1',
        'x-other': 'y',
      },
    });
    const seen = ((await body.json()) as { headers: object }).headers;
    expect(seen).to.include({ 'x-other': 'y' });
    expect(seen).to.not.have.any.keys(
      'cookie',
      'authorization',
      'x-api-key',
      'x-svc-sandbox-token',
      'x-forwarded-for',
      'forwarded',
    );
    expect(headers).to.not.have.any.keys('set-cookie', 'www-authenticate', 'nel');
  });

  it('is refused without its token, and with the token of another port or sandbox', async () => {
    const other = await box.get(`/ports/${PORT + 1}`);
    expect((await ask('', { headers: {} })).statusCode).to.equal(401);
    expect((await ask('', { headers: { 'x-svc-sandbox-token': 'x' } })).statusCode).to.equal(404);
    expect((await ask('', { headers: other.json.headers })).statusCode).to.equal(404);
    const elsewhere = opened.url.replace(box.id, '00000000-0000-4000-8000-000000000000');
    expect((await request(elsewhere, { headers: opened.headers })).statusCode).to.equal(404);
  });

  it('answers 502 if no server listens on it', async () => {
    const other = (await box.get(`/ports/${PORT + 1}`)).json;
    const { statusCode, body } = await request(other.url, { headers: other.headers });
    expect([statusCode, ((await body.json()) as { error: { code: string } }).error.code]).to.deep.equal([
      502,
      'SUPPLIER_ERROR',
    ]);
    expect((await box.get('/ports/70000')).json.error.code).to.equal('PORT_INVALID');
  });

  it('closes the connection to its server when the client disconnects', async () => {
    const { body } = await ask('hang');
    const pieces = body[Symbol.asyncIterator]();
    await pieces.next();
    body.destroy();
    await until('the server knows', async () => (await box.get('/files?path=left')).status === 200);
  });

  it('relays WebSocket upgrades, and closes each side when the other one closes', async () => {
    const socket = await openSocket();
    const heard = read(socket);
    await until('the upgrade', () => heard().includes('\n{'));
    expect(heard()).to.match(/^HTTP\/1\.1 101/);
    expect(heard().toLowerCase()).to.not.include('set-cookie');
    expect(heard()).to.not.include('x-svc-sandbox-token');
    socket.write('ping through');
    await until('the echo', () => heard().endsWith('ping through'));
    socket.destroy();
    await until('the server knows', async () => (await box.get('/files?path=left-socket')).status === 200);
  });

  it('closes all connections, including open ones, once the owner of the sandbox revokes the port', async () => {
    const socket = await openSocket();
    const heard = read(socket);
    await until('the upgrade', () => heard().includes('\n{'));
    const closed = new Promise((done) => socket.once('close', done));
    expect((await gateway.call(`${box.base}/ports/${PORT}`, { method: 'DELETE', key: box.key })).status).to.equal(204);
    await closed;
    expect((await ask('')).statusCode).to.equal(404);
    const operations = (await box.get('/audit?kind=operations&pageSize=100')).json.items;
    expect(operations.map(({ type }: { type: string }) => type)).to.include.members(['PORT_EXPOSE', 'PORT_REVOKE']);
  });

  const openSocket = async (): Promise<Socket> => {
    const { hostname, port, pathname, host } = new URL(opened.url);
    const socket = connect(Number(port), hostname);
    const headers = Object.entries({
      host,
      connection: 'Upgrade',
      upgrade: 'websocket',
      cookie: 'a=b',
      ...opened.headers,
    });
    socket.write(
      `GET ${pathname}ws HTTP/1.1\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`,
    );
    return socket;
  };

  const read = (socket: Socket) => {
    let all = '';
    socket.on('data', (bytes) => (all += bytes.toString()));
    socket.on('error', () => undefined);
    return () => all;
  };
});
