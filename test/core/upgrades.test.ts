import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { fail } from '../../core/errors';
import type { OwnHosts, Route } from '../../core/plugin';
import { compileRoutes } from '../../core/router';
import { takeUpgrades } from '../../core/upgrades';

const echo: NonNullable<Extract<Route, { auth: 'none' }>['upgrade']> = async (visit, _request, socket) => {
  if (visit.params['name'] === 'closed') throw fail('FORBIDDEN');
  socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  socket.write(`${visit.params['name'] ?? visit.path}: `);
  socket.pipe(socket);
};

const routes = compileRoutes([
  {
    listener: 'public',
    auth: 'none',
    method: '*',
    path: '/echo/{name}',
    summary: 'Says it again.',
    answers: {},
    handle: async (_visit, _request, response) => void response.end('ordinary'),
    upgrade: echo,
  },
]);

const hosts: OwnHosts[] = [
  { owns: (host) => host.endsWith('.mine.test'), handle: async () => undefined, upgrade: echo },
];

describe('an upgrade', () => {
  let server: Server;

  before((done) => {
    server = createServer((incoming: IncomingMessage, response: ServerResponse) => {
      void text(incoming).then((body) => response.end(`${incoming.method} ${incoming.url} ${body}`));
    });
    takeUpgrades(server, routes, hosts);
    server.listen(0, '127.0.0.1', done);
  });

  after(() => {
    server.close();
    server.closeAllConnections();
  });

  const ask = (path: string, { method = 'GET', body = '', headers = {} as Record<string, string> } = {}) =>
    new Promise<{ status: number; socket?: Duplex; body?: string }>((resolve, reject) => {
      const { port } = server.address() as AddressInfo;
      const asked = request({
        host: '127.0.0.1',
        port,
        path,
        method,
        agent: false,
        headers: { connection: 'Upgrade', upgrade: 'websocket', ...headers },
      });
      asked.once('upgrade', (response, socket, head) => {
        socket.unshift(head);
        resolve({ status: response.statusCode ?? 0, socket });
      });
      asked.once('response', (response) => {
        text(response).then((read) => resolve({ status: response.statusCode ?? 0, body: read }), reject);
      });
      asked.once('error', reject);
      asked.end(body);
    });

  const heard = async (socket: Duplex | undefined) => {
    socket?.end('hello');
    let all = '';
    for await (const piece of socket ?? []) all += String(piece);
    return all;
  };

  it('goes to the route that takes it', async () => {
    const { status, socket } = await ask('/echo/one');
    expect([status, await heard(socket)]).to.deep.equal([101, 'one: hello']);
  });

  it('to a host of a plugin goes to that plugin, whatever the path', async () => {
    const { status, socket } = await ask('/any/path', { headers: { host: 'x.mine.test' } });
    expect([status, await heard(socket)]).to.deep.equal([101, '/any/path: hello']);
  });

  it('that is refused is answered from the catalogue', async () => {
    const { status, body } = await ask('/echo/closed');
    expect([status, JSON.parse(body ?? '').error.code]).to.deep.equal([403, 'FORBIDDEN']);
  });

  it('that nobody takes is served as an ordinary request, with its body', async () => {
    const large = 'x'.repeat(200_000);
    const { status, body } = await ask('/v1/messages?a=b', {
      method: 'POST',
      body: large,
      headers: { upgrade: 'h2c' },
    });
    expect([status, body]).to.deep.equal([200, `POST /v1/messages?a=b ${large}`]);
  });

  it('at an address of one upstream is an ordinary request', async () => {
    const { body } = await ask('/echo/one', { headers: { host: 'acme.p.localhost' } });
    expect(body).to.equal('GET /echo/one ');
  });
});
