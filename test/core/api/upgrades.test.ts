import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import type { OwnHosts, Route } from '../../../core/api/route';
import { compileRoutes } from '../../../core/api/router';
import { takeUpgrades } from '../../../core/api/upgrades';
import { fail } from '../../../core/base/errors';
import { until } from '../../support/until';

const echo: NonNullable<Extract<Route, { auth: 'none' }>['upgrade']> = async (visit, _request, socket) => {
  if (visit.params['name'] === 'closed') throw fail('FORBIDDEN');
  socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
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

describe('an HTTP upgrade request', () => {
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
        headers: { connection: 'Upgrade', upgrade: 'echo', ...headers },
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

  it('leaves no open connection when it is refused and its client has disconnected', async () => {
    const connections = () =>
      new Promise<number>((resolve, reject) => {
        server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
      });
    const before = await connections();
    const { port } = server.address() as AddressInfo;
    const client = connect(port, '127.0.0.1');
    client.write('GET /echo/closed HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n');
    client.once('data', () => client.write('a frame that nobody reads'));
    expect(await text(client)).to.match(/^HTTP\/1.1 403 /);
    await until('it is closed', async () => (await connections()) === before);
  });

  const heard = async (socket: Duplex | undefined) => {
    socket?.end('hello');
    let all = '';
    for await (const piece of socket ?? []) all += String(piece);
    return all;
  };

  it('is passed to the upgrade handler of the route that matches its path', async () => {
    const { status, socket } = await ask('/echo/one');
    expect([status, await heard(socket)]).to.deep.equal([101, 'one: hello']);
  });

  it('is passed to the plugin that owns its host name, whatever the path', async () => {
    const { status, socket } = await ask('/any/path', { headers: { host: 'x.mine.test' } });
    expect([status, await heard(socket)]).to.deep.equal([101, '/any/path: hello']);
  });

  it('is served as an ordinary request, with its body, when no route accepts it', async () => {
    const large = 'x'.repeat(200_000);
    const { status, body } = await ask('/v1/messages?a=b', {
      method: 'POST',
      body: large,
      headers: { upgrade: 'h2c' },
    });
    expect([status, body]).to.deep.equal([200, `POST /v1/messages?a=b ${large}`]);
  });

  it('waits for the response to an earlier request on its connection', async () => {
    const { port } = server.address() as AddressInfo;
    const client = connect(port, '127.0.0.1');
    let answered = '';
    client.on('data', (bytes) => (answered += bytes.toString()));
    const ordinary = 'GET /first HTTP/1.1\r\nHost: x\r\n\r\n';
    client.write(`${ordinary}GET /echo/one HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n`);
    await until('both are answered', () => answered.includes('one: '));
    expect(answered.indexOf('GET /first')).to.be.within(0, answered.indexOf('101 Switching'));
    client.destroy();
  });
});
