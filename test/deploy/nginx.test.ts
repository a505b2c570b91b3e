import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Pool } from 'undici';
import { ask } from '../support/calls';
import { newAuthority } from '../support/certificates';
import { temporaryFolder } from '../support/configuration-folder';
import { freePort } from '../support/free-port';
import { startGateway, type TestGateway } from '../support/gateway';
import { findProgram } from '../support/programs';
import { textOf } from '../support/sources';
import { databaseOf } from '../support/stores';
import { TestSocket } from '../support/test-socket';
import { until } from '../support/until';
import { messagesAnswer, messagesStream, responsesStream, startUpstream, type TestUpstream } from '../support/upstream';

const TEMPORARY = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

/** Starts nginx in the foreground with this `http` block, in a temporary folder. Resolves when the port accepts connections. */
async function startNginx(http: string, port: number): Promise<{ stop(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-nginx-'));
  const file = join(folder, 'nginx.conf');
  await writeFile(
    file,
    `${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
events { worker_connections 1024; }
http {
  access_log off;
  ${TEMPORARY.map((each) => `${each}_temp_path ${folder}/${each};`).join('\n  ')}
  ${http}
}
`,
  );
  const child = spawn(findProgram('nginx'), ['-p', folder, '-e', 'stderr', '-c', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let output = '';
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await until('nginx takes connections', async () => {
    if (child.exitCode !== null) throw new Error(`nginx ended: ${output}`);
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return socket.destroy();
  });
  return {
    stop: async () => {
      const ended = once(child, 'exit');
      if (child.exitCode === null) {
        child.kill('SIGQUIT');
        setTimeout(() => child.kill('SIGTERM'), 2_000).unref();
        await ended;
      }
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const USAGE = { input: 10, output: 5 };

/** Replaces a value of the file by a test's own. The value must exist. */
function replaced(file: string, values: Readonly<Record<string, string>>): string {
  return Object.entries(values).reduce((given, [there, own]) => {
    assert.ok(given.includes(there), `the file says "${there}"`);
    return given.replace(there, own);
  }, file);
}

describe('nginx with deploy/nginx/tollgate.conf in front of the gateway', function () {
  this.timeout(120_000);
  let upstream: TestUpstream;
  let gateway: TestGateway;
  let nginx: Awaited<ReturnType<typeof startNginx>>;
  let client: Pool;
  let url: string;
  let ca: string;
  let key: string;

  before(async () => {
    const folder = temporaryFolder({});
    const authority = await newAuthority(folder);
    const own = await authority.issue('tollgate', ['localhost', '127.0.0.1']);
    ca = authority.ca;
    upstream = await startUpstream();
    gateway = await startGateway({
      own: true,
      upstreams: { acme: { url: upstream.url } },
      system: { proxies: { count: 1 } },
      env: { PUBLIC_URL: 'https://api.example.com' },
    });
    const port = await freePort();
    const file = replaced(textOf('deploy/nginx/tollgate.conf'), {
      '127.0.0.1:8080': new URL(gateway.url).host,
      'listen 443 ssl': `listen 127.0.0.1:${port} ssl`,
      '/etc/nginx/tls/tollgate.pem': own.cert,
      '/etc/nginx/tls/tollgate.key': own.key,
    });
    nginx = await startNginx(file, port);
    url = `https://127.0.0.1:${port}`;
    client = new Pool(url, { connect: { ca } });
    ({ key } = await gateway.newCustomer('10'));
  });
  after(async () => {
    await client?.destroy();
    await nginx?.stop();
    await gateway?.stop();
    await upstream?.stop();
  });
  beforeEach(() => {
    upstream.reset();
    upstream.always(messagesAnswer({ usage: USAGE }));
  });

  const post = (body: unknown, headers = {}) =>
    client.request({
      method: 'POST',
      path: '/v1/messages',
      headers: { 'content-type': 'application/json', 'x-api-key': key, ...headers },
      body: JSON.stringify(body),
    });

  it("relays a stream's events while the upstream is still sending", async () => {
    let sendRest = (): void => undefined;
    const rest = new Promise<void>((done) => {
      sendRest = done;
    });
    upstream.next(messagesStream({ texts: ['one', 'two'], usage: USAGE, waitFor: { before: 4, until: rest } }));
    const { body } = await post(ask({ stream: true }));
    let read = '';
    body.on('data', (chunk) => (read += String(chunk)));
    await until('the first half is read', () => read.includes('one'));
    sendRest();
    await until('the other half is read', () => read.includes('message_stop'));
  });

  it('accepts calls over HTTP/2', async () => {
    const session = connectHttp2(url, { ca });
    const stream = session.request({
      ':method': 'POST',
      ':path': '/v1/messages',
      'x-api-key': key,
      'content-type': 'application/json',
    });
    stream.end(JSON.stringify(ask()));
    assert.equal(JSON.parse(await text(stream)).type, 'message');
    session.close();
  });

  it('relays WebSockets', async () => {
    upstream.next(responsesStream());
    const socket = await TestSocket.open({ ...gateway, url }, key, { ca });
    const events = await socket.call(TestSocket.create());
    assert.equal(events.at(-1).type, 'response.completed');
    socket.socket.close();
  });

  it('relays a body of 10 MB', async () => {
    const long = ask({ messages: [{ role: 'user', content: 'x '.repeat(5_000_000) }] });
    const { statusCode, body } = await post(long);
    await body.dump();
    assert.equal(statusCode, 200);
  });

  it("forwards the client's real address, whatever address the client claims in its headers", async () => {
    for (const localAddress of ['127.0.0.2', '127.0.0.3', '127.0.0.3']) {
      const from = new Pool(url, { connect: { ca }, localAddress });
      const { statusCode } = await from.request({
        method: 'POST',
        path: '/console/api/session',
        headers: {
          'content-type': 'application/json',
          origin: 'https://api.example.com',
          'x-forwarded-for': '192.0.2.1',
        },
        body: JSON.stringify({ email: 'ada@example.com', password: 'a guess' }),
      });
      assert.equal(statusCode, 401);
      await from.destroy();
    }
    await gateway.stop();
    const database = await databaseOf(gateway.stores);
    // One row for the e-mail address, and one for each of the two client addresses.
    assert.equal((await database('sign_in_attempts')).length, 1 + 2);
    await database.destroy();
  });
});
