import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket, type Server as TcpServer } from 'node:net';
import { TLSSocket } from 'node:tls';
import {
  classifyDialFailure,
  type Destination,
  type Egress,
  nothingWasSent,
  openEgress,
  type Resolve,
  wasReusedConnection,
} from '../../../core/wire/egress';
import { destination } from '../../support/destination';
import { freePort } from '../../support/free-port';

const GET = { method: 'GET', path: '/' } as const;
const POST = { method: 'POST', path: '/', body: '{}' } as const;

describe('egress to upstreams', () => {
  let egress: Egress;
  const servers: (Server | TcpServer)[] = [];
  const sockets = new Set<Socket>();

  beforeEach(() => {
    egress = openEgress();
  });
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    for (const server of servers.splice(0)) await new Promise((done) => server.close(done));
    await egress.close();
  });

  const listen = async (server: Server | TcpServer): Promise<string> => {
    servers.push(server);
    server.on('connection', (socket: Socket) => {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  const serve = (listener: RequestListener): Promise<string> => listen(createServer(listener));
  const local = (url: string, settings: Parameters<typeof destination>[1] = {}) =>
    destination(url, { allowPrivate: true, ...settings });

  it('ignores a proxy in the environment', async () => {
    let proxied = 0;
    const proxy = await serve((_request, response) => {
      proxied += 1;
      response.end('from the proxy');
    });
    const url = await serve((_request, response) => response.end('from the upstream'));
    const names = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'NODE_USE_ENV_PROXY'];
    const before = names.map((name) => process.env[name]);
    for (const name of names) process.env[name] = name === 'NODE_USE_ENV_PROXY' ? '1' : proxy;
    try {
      const fresh = openEgress();
      const answer = await fresh.pool(local(url)).request(GET);
      assert.equal(await answer.body.text(), 'from the upstream');
      await fresh.close();
    } finally {
      names.forEach((name, index) => {
        if (before[index] === undefined) delete process.env[name];
        else process.env[name] = before[index];
      });
    }
    assert.equal(proxied, 0);
  });

  it("sends the URL's host as the TLS server name, whatever the connected address", async () => {
    const names: string[] = [];
    const server = createTcpServer((socket) => {
      const secure = new TLSSocket(socket, {
        isServer: true,
        SNICallback: (name, done) => {
          names.push(name);
          done(new Error('no certificate'));
        },
      });
      secure.on('error', () => socket.destroy());
    });
    const port = new URL(await listen(server)).port;
    const named = openEgress({ resolve: (_host, done) => done(null, [{ address: '127.0.0.1', family: 4 }]) });
    const error = await rejection(named.pool(local(`https://upstream.example:${port}`)).request(GET));
    assert.deepEqual(names, ['upstream.example']);
    assert.equal(classifyDialFailure(error), 'connect_failed');
    assert.equal(nothingWasSent(error), true);
    await named.close();
  });

  describe('with its pools of connections', () => {
    it('keeps the pool while the URL and its settings stay the same, even after a configuration reload', async () => {
      const url = await serve((_request, response) => response.end());
      const pool = egress.pool(local(url));
      assert.equal(egress.pool(local(url)), pool);
      assert.equal(egress.pool(local(`${url}/other/path`)), pool);
    });

    it('opens another pool when the address, the timeouts or allowPrivate change', async () => {
      const url = await serve((_request, response) => response.end());
      const pool = egress.pool(local(url));
      const others = [
        local(url.replace('127.0.0.1', '127.0.0.2')),
        local(url, { headersMs: 1 }),
        local(url, { idleMs: 1 }),
        local(url, { connectMs: 1 }),
        local(url, { allowPrivate: false }),
      ].map((changed) => egress.pool(changed));
      assert.equal(new Set([pool, ...others]).size, 6);
    });

    it('serves calls with the old configuration from its pool, and calls with the new one from the new pool', async () => {
      const url = await serve((_request, response) => response.end('ok'));
      const before = local(url);
      const now = local(url, { idleMs: 60_000 });
      for (const there of [before, now, before, now, now, before]) {
        const answer = await egress.pool(there).request(GET);
        assert.equal(await answer.body.text(), 'ok');
      }
    });
  });

  it('waits for running streams when it closes, and accepts no new requests meanwhile', async () => {
    let finish = (): void => undefined;
    const url = await serve((_request, response) => {
      response.write('first ');
      finish = () => response.end('last');
    });
    const there = local(url);
    const answer = await egress.pool(there).request(GET);
    const closed = egress.close();
    assert.throws(() => egress.pool(there), /closed/);
    finish();
    assert.equal(await answer.body.text(), 'first last');
    await closed;
  });

  describe('when a request fails', () => {
    const failure = async (there: ReturnType<typeof destination>, signal?: AbortSignal): Promise<unknown> =>
      rejection(
        (async () => {
          const answer = await egress.pool(there).request({ ...POST, ...(signal === undefined ? {} : { signal }) });
          await answer.body.text();
        })(),
      );

    const REFUSED = { kind: 'connect_failed', nothingSent: true };
    const RESET = { kind: 'reset', nothingSent: false };
    const https = (url: string) => local(url.replace('http:', 'https:'));
    const tcp = (onSocket: (socket: Socket) => void) => listen(createTcpServer(onSocket));
    const CASES: readonly [what: string, at: () => Promise<Destination>, expected: typeof RESET][] = [
      ['a closed port', async () => local(`http://127.0.0.1:${await freePort()}`), REFUSED],
      ['a server without TLS', async () => https(await tcp((socket) => socket.end('this is no TLS\r\n'))), REFUSED],
      [
        'a connection reset during the TLS handshake',
        async () => https(await tcp((socket) => socket.once('data', () => socket.resetAndDestroy()))),
        REFUSED,
      ],
      [
        'a missing response head',
        async () => local(await serve(() => undefined), { headersMs: 50 }),
        { kind: 'timeout', nothingSent: false },
      ],
      [
        'silence within the body',
        async () => local(await serve((_, response) => response.write('first')), { idleMs: 50 }),
        { kind: 'timeout', nothingSent: false },
      ],
      ['a reset before the head', async () => local(await serve(({ socket }) => socket.resetAndDestroy())), RESET],
      ['an end before the head', async () => local(await serve(({ socket }) => void socket.end())), RESET],
      [
        'an end within a chunk',
        async () =>
          local(await serve(({ socket }, response) => response.write('first', () => socket.end('40\r\nhalf of')))),
        RESET,
      ],
      [
        'an answer that is not HTTP',
        async () => local(await tcp((socket) => socket.once('data', () => socket.end('SSH-2.0\r\n')))),
        RESET,
      ],
    ];
    for (const [what, at, { kind, nothingSent }] of CASES)
      it(`reports ${kind}${nothingSent ? ', nothing sent' : ''} for ${what}`, async () => {
        const error = await failure(await at());
        assert.equal(classifyDialFailure(error), kind);
        assert.equal(nothingWasSent(error), nothingSent);
        assert.equal(wasReusedConnection(error), false);
      });

    it('reports that nothing was sent if the host does not exist or its name never resolves', async () => {
      const resolved = (host: string, resolve: Resolve) => {
        const there = openEgress({ resolve });
        return rejection(there.pool(local(`http://${host}.example`, { connectMs: 50 })).request(POST)).finally(() =>
          there.close(),
        );
      };
      const unknown = await resolved('nowhere', (_host, done) =>
        done(Object.assign(new Error('getaddrinfo'), { code: 'ENOTFOUND' }), []),
      );
      const silent = await resolved('slow', () => undefined);
      assert.deepEqual([unknown, silent].map(classifyDialFailure), ['connect_failed', 'timeout']);
      assert.deepEqual([unknown, silent].map(nothingWasSent), [true, true]);
    });

    it('reports cancelled if the gateway cancels the request, before or after the response head', async () => {
      const url = await serve((request, response) => {
        if (request.headers['x-begin'] !== undefined) response.write('first');
      });
      const leaving = new AbortController();
      setTimeout(() => leaving.abort(), 20);
      assert.equal(classifyDialFailure(await failure(local(url), leaving.signal)), 'cancelled');
      const answer = await egress.pool(local(url)).request({ ...POST, headers: { 'x-begin': '1' } });
      setImmediate(() => answer.body.destroy());
      assert.equal(classifyDialFailure(await rejection(answer.body.text())), 'cancelled');
    });

    for (const how of ['reset', 'end'] as const) {
      it(`reports reset of a reused connection if the upstream closed it after an earlier answer (${how})`, async () => {
        const asked = new Map<Socket, number>();
        const url = await serve((request: IncomingMessage, response) => {
          const { socket } = request;
          asked.set(socket, (asked.get(socket) ?? 0) + 1);
          if (asked.get(socket) === 1) response.end('ok');
          else if (how === 'reset') socket.resetAndDestroy();
          else socket.end();
        });
        const there = local(url);
        await askWhole(egress, there);
        const error = await failure(there);
        assert.equal(classifyDialFailure(error), 'reset');
        assert.equal(wasReusedConnection(error), true);
        assert.equal(nothingWasSent(error), false);
      });
    }
  });
});

/** Sends a request, reads the whole answer, and waits for the turn in which the pool takes the connection back. */
async function askWhole(egress: Egress, there: Destination): Promise<void> {
  await (await egress.pool(there).request(POST)).body.dump();
  await new Promise((done) => setImmediate(done));
}

async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('it was answered');
}
