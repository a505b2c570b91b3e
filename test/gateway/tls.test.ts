import assert from 'node:assert/strict';
import { once } from 'node:events';
import { copyFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect, type PeerCertificate } from 'node:tls';
import { type Dispatcher, Pool } from 'undici';
import { ask } from '../support/calls';
import { newAuthority, replaceFile, type TestAuthority } from '../support/certificates';
import { temporaryFolder } from '../support/configuration-folder';
import { failToStart, startGateway, type TestGateway } from '../support/gateway';
import { TestSocket } from '../support/test-socket';
import { until } from '../support/until';
import { messagesAnswer, messagesStream, responsesStream, startUpstream, type TestUpstream } from '../support/upstream';

const USAGE = { input: 10, output: 5 };
const HERE = ['localhost', '127.0.0.1'];

/** Makes a folder with certificates: `first`, `second`, `other` for another host, and `used` for the listeners. */
async function newCertificates() {
  const folder = temporaryFolder({});
  const authority = await newAuthority(folder);
  const first = await authority.issue('first', HERE);
  await authority.issue('second', HERE);
  await authority.issue('other', ['api.example.com']);
  await Promise.all([copyFile(first.key, join(folder, 'used.key')), copyFile(first.cert, join(folder, 'used.pem'))]);
  const of = (name: string) => ({ key: join(folder, `${name}.key`), cert: join(folder, `${name}.pem`) });
  const use = async (name: string) => {
    for (const kind of ['key', 'pem'])
      await replaceFile(join(folder, `used.${kind}`), await readFile(join(folder, `${name}.${kind}`)));
  };
  return { folder, authority, of, use };
}

/** Connects with TLS and returns the socket with the certificate that it was shown. */
async function handshake(url: string, { ca }: TestAuthority, servername = 'localhost') {
  const { hostname, port } = new URL(url);
  const options = servername === '' ? {} : { servername };
  const socket = connect({ host: hostname, port: Number(port), ca, checkServerIdentity: () => undefined, ...options });
  await once(socket, 'secureConnect');
  return { socket, shown: subjectOf(socket.getPeerCertificate()) };
}

async function shownAt(url: string, authority: TestAuthority, servername?: string): Promise<string> {
  const { socket, shown } = await handshake(url, authority, servername);
  socket.destroy();
  return shown;
}

function subjectOf({ subject }: PeerCertificate): string {
  return String(subject.CN);
}

for (const fastLane of ['true', 'false']) {
  describe(`A gateway with TLS (${fastLane === 'true' ? 'fast lane' : 'through Express'})`, function () {
    this.timeout(120_000);
    let upstream: TestUpstream;
    let gateway: TestGateway;
    let certificates: Awaited<ReturnType<typeof newCertificates>>;
    let key: string;

    before(async () => {
      [upstream, certificates] = await Promise.all([startUpstream(), newCertificates()]);
      const { authority, of } = certificates;
      gateway = await startGateway({
        upstreams: { acme: { url: upstream.url } },
        env: { FAST_LANE: fastLane, WATCH_CONFIG: 'true' },
        ca: authority.ca,
        configure: (config) => {
          const { port, hostname } = config['http'];
          const tls = { default: of('used'), '*.example.com': of('other') };
          delete config['http'];
          config['https'] = { port, hostname, tls };
          config['admin'].tls = { default: of('used') };
        },
      });
      ({ key } = await gateway.newCustomer('10'));
    });
    after(async () => {
      await gateway?.stop();
      await upstream?.stop();
    });
    beforeEach(() => {
      upstream.reset();
      upstream.always(messagesAnswer({ usage: USAGE }));
    });

    /** Opens a stream whose first half the client has read. The upstream sends the rest after `finish`. */
    const openHalf = async () => {
      let sendRest = (): void => undefined;
      const rest = new Promise<void>((done) => {
        sendRest = done;
      });
      upstream.next(messagesStream({ texts: ['one', 'two'], usage: USAGE, waitFor: { before: 4, until: rest } }));
      const stream = await open(gateway.url, certificates.authority, key);
      await stream.reads('one');
      const finish = async () => {
        sendRest();
        await stream.reads('message_stop');
        await stream.close();
      };
      return { finish };
    };

    it('has https addresses for both listeners, and serves calls and the admin API there', async () => {
      assert.deepEqual(
        [gateway.url, gateway.adminUrl].map((url) => new URL(url).protocol),
        ['https:', 'https:'],
      );
      assert.equal((await gateway.call('/v1/messages', { key, body: ask() })).status, 200);
      assert.equal((await gateway.admin('GET', '/admin/v1/accounts')).status, 200);
    });

    it('relays streams piece by piece, and serves calls over WebSocket', async () => {
      const stream = await openHalf();
      await stream.finish();
      upstream.next(responsesStream());
      const client = await TestSocket.open(gateway, key, { ca: certificates.authority.ca });
      const events = await client.call(TestSocket.create());
      assert.equal(events.at(-1).type, 'response.completed');
      client.socket.close();
    });

    it('presents the certificate for the host name that the client requests', async () => {
      const shown = (host: string) => shownAt(gateway.url, certificates.authority, host);
      assert.deepEqual(
        [
          await shown('api.example.com'),
          await shown('API.example.com'),
          await shown('a.b.example.com'),
          await shown(''),
        ],
        ['other', 'other', 'first', 'first'],
      );
    });

    it('loads changed certificate files without a restart, and an open stream continues', async () => {
      const { authority, use } = certificates;
      const stream = await openHalf();
      await use('second');
      for (const url of [gateway.url, gateway.adminUrl])
        for (const host of ['localhost', ''])
          await until(
            `${url} shows the new certificate`,
            async () => (await shownAt(url, authority, host)) === 'second',
          );
      await stream.finish();
      await use('first');
      await until('the first is shown again', async () => (await shownAt(gateway.url, authority)) === 'first');
    });

    it('keeps the old certificate while the new file is invalid, logs the file, and loads the corrected one', async () => {
      const { folder, authority, use, of } = certificates;
      await replaceFile(join(folder, 'used.pem'), 'no certificate');
      const wrong = `https.tls.default.cert: ${of('used').cert} is not a certificate in PEM`;
      await until('the log says what is wrong', () => gateway.output().includes(wrong));
      assert.equal(await shownAt(gateway.url, authority), 'first');
      const { status } = await gateway.admin('POST', '/admin/v1/config/reload');
      assert.equal(status, 200);
      assert.equal(await shownAt(gateway.url, authority), 'first');
      await use('second');
      await until('the mended one is shown', async () => (await shownAt(gateway.url, authority)) === 'second');
      await use('first');
      await until('the first is shown again', async () => (await shownAt(gateway.url, authority)) === 'first');
    });
  });
}

describe('A start with TLS', function () {
  this.timeout(120_000);

  it('fails if fields or files are wrong, and the error names each of them', async () => {
    const { folder, of } = await newCertificates();
    const missing = join(folder, 'missing.key');
    const { code, output } = await failToStart({
      upstreams: { acme: { url: 'http://127.0.0.1:9' } },
      configure: (config) => {
        const { port } = config['http'];
        delete config['http'];
        const tls = {
          default: { key: missing, cert: of('first').cert },
          'a.example.com': { ...of('first'), cert: of('other').cert },
        };
        config['https'] = { port, tls };
      },
    });
    assert.equal(code, 78);
    assert.ok(output.includes(`https.tls.default.key: ${missing} cannot be read (ENOENT)`), output);
    const other = `https.tls.a.example.com.cert: ${of('other').cert} is not the certificate of the private key in ${of('first').key}`;
    assert.ok(output.includes(other), output);
  });

  it('fails if both `http` and `https` are configured', async () => {
    const { of } = await newCertificates();
    const { code, output } = await failToStart({
      upstreams: { acme: { url: 'http://127.0.0.1:9' } },
      configure: (config) => {
        config['https'] = { port: 0, tls: { default: of('first') } };
      },
    });
    assert.equal(code, 78);
    assert.match(output, /gateway\.config\.yml:\d+:1: https: is the public listener with TLS.*remove one of them/);
  });
});

/** Opens a stream on its own connection and reads it as it arrives. */
async function open(url: string, { ca }: TestAuthority, key: string) {
  const pool = new Pool(url, { connect: { ca } });
  const headers = { 'content-type': 'application/json', 'x-api-key': key };
  const { statusCode, body }: Dispatcher.ResponseData = await pool.request({
    method: 'POST',
    path: '/v1/messages',
    headers,
    body: JSON.stringify(ask({ stream: true })),
  });
  assert.equal(statusCode, 200);
  let text = '';
  body.on('data', (chunk) => (text += String(chunk)));
  const reads = (word: string) => until(`"${word}" is read`, () => text.includes(word));
  return { reads, close: () => pool.destroy() };
}
