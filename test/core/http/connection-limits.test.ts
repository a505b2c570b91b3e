import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { type ConnectionLimits, limitConnections } from '../../../core/http/connection-limits';
import { quiet } from '../../support/databases';

const HEALTH = 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n';

describe('connections to a listener', () => {
  let server: Server;
  const opened: Socket[] = [];

  const listen = async (limits: Partial<ConnectionLimits>, isProxy = (_address: string) => false) => {
    server = createServer((_, response) => response.end('here'));
    limitConnections(server, { max: 100, maxPerAddress: 100, ...limits }, { isProxy }, quiet);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  };
  afterEach(() => {
    for (const socket of opened.splice(0)) socket.destroy();
    server.closeAllConnections();
    server.close();
  });

  /** Opens a connection from a local address and returns whether the server answered it. */
  const isServed = (from = '127.0.0.1') =>
    new Promise<boolean>((resolve) => {
      const { port } = server.address() as AddressInfo;
      const socket = connect({ port, host: '127.0.0.1', localAddress: from });
      opened.push(socket);
      socket.on('error', () => undefined);
      socket.once('data', () => resolve(true));
      socket.once('close', () => resolve(false));
      socket.write(HEALTH);
    });

  it('are closed at once if they exceed the total limit', async () => {
    await listen({ max: 2 });
    assert.deepEqual([await isServed(), await isServed(), await isServed()], [true, true, false]);
  });

  it('are closed at once if they exceed the limit of their address, while other addresses are served', async () => {
    await listen({ maxPerAddress: 2 });
    assert.deepEqual([await isServed(), await isServed(), await isServed()], [true, true, false]);
    assert.equal(await isServed('127.0.0.2'), true);
  });

  it('no longer count when they are closed', async () => {
    await listen({ maxPerAddress: 1 });
    for (let turn = 0; turn < 3; turn += 1) {
      const closed = new Promise((done) => server.once('connection', (socket: Socket) => socket.once('close', done)));
      assert.equal(await isServed(), true);
      opened.pop()?.destroy();
      await closed;
    }
  });

  it('from a trusted proxy count only towards the total limit', async () => {
    await listen({ maxPerAddress: 1 }, (address) => address === '127.0.0.1');
    assert.deepEqual([await isServed(), await isServed(), await isServed()], [true, true, true]);
    assert.deepEqual([await isServed('127.0.0.2'), await isServed('127.0.0.2')], [true, false]);
  });

  it('count once even if the server receives the same TLS socket twice', async () => {
    await listen({ max: 1 });
    server.prependOnceListener('connection', () => server.emit('connection', new TLSSocket(new Socket())));
    assert.equal(await isServed(), true);
  });
});
