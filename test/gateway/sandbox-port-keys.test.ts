import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { request } from 'undici';
import { startGateway, type TestGateway } from '../support/gateway';
import { OPEN_SANDBOX_GATEWAY, type RunningSandbox, runningSandbox, serve } from '../support/sandboxes';
import { until } from '../support/until';

const PORT = 28_761;

const SERVER = `
  const server = require('http').createServer((question, answer) => answer.end('here'));
  server.on('upgrade', (question, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: echo\\r\\n\\r\\n');
    socket.pipe(socket);
  });
  server.listen(${PORT}, '127.0.0.1');
`;

interface Opened {
  readonly url: string;
  readonly headers: Record<string, string>;
}

describe('the token for a port of a sandbox', () => {
  let gateway: TestGateway;
  let box: RunningSandbox;

  before(async () => {
    gateway = await startGateway(OPEN_SANDBOX_GATEWAY);
    box = await runningSandbox(gateway);
    await serve(box, PORT, SERVER);
  });

  after(async () => {
    await box.end();
    await gateway.stop();
  });

  const open = async (by: string): Promise<Opened> =>
    (await gateway.call(`${box.base}/ports/${PORT}`, { method: 'GET', key: by })).json;

  const ask = async ({ url, headers }: Opened): Promise<number> => {
    const { statusCode, body } = await request(url, { headers });
    await body.dump();
    return statusCode;
  };

  const secondKey = async (more: object = {}): Promise<{ id: string; key: string }> =>
    (await gateway.admin('POST', `/admin/v1/accounts/${box.accountId}/keys`, { name: 'second', ...more })).json;

  /** Opens a connection through the port and upgrades it to another protocol. */
  const upgrade = async ({ url, headers }: Opened): Promise<Socket> => {
    const { hostname, port, pathname, host } = new URL(url);
    const socket = connect(Number(port), hostname);
    const all = Object.entries({ host, connection: 'Upgrade', upgrade: 'echo', ...headers });
    socket.write(`GET ${pathname} HTTP/1.1\r\n${all.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).to.match(/^HTTP\/1\.1 101 /);
    return socket;
  };

  it('is refused once the API key that made it is revoked, and tokens of other API keys stay valid', async () => {
    const [first, second] = [await open(box.key), await secondKey()];
    const bySecond = await open(second.key);
    const socket = await upgrade(bySecond);
    const ended = once(socket, 'close');
    expect(await ask(bySecond)).to.equal(200);
    expect((await gateway.admin('DELETE', `/admin/v1/keys/${second.id}`)).status).to.equal(200);
    expect(await ask(bySecond)).to.equal(404);
    expect(await ask(first)).to.equal(200);
    await ended;
  }).timeout(30_000);

  it('is refused once the API key that made it has expired', async () => {
    const second = await secondKey({ expiresAt: new Date(Date.now() + 2_000).toISOString() });
    const bySecond = await open(second.key);
    const socket = await upgrade(bySecond);
    const ended = once(socket, 'close');
    await until('the key has expired', async () => (await ask(bySecond)) === 404);
    await ended;
  }).timeout(30_000);

  it('is refused while its account is frozen', async () => {
    const opened = await open(box.key);
    const socket = await upgrade(opened);
    const ended = once(socket, 'close');
    await gateway.admin('POST', `/admin/v1/accounts/${box.accountId}/freeze`);
    expect(await ask(opened)).to.equal(403);
    await ended;
    await gateway.admin('POST', `/admin/v1/accounts/${box.accountId}/unfreeze`);
    expect(await ask(opened)).to.equal(200);
  }).timeout(30_000);
});
