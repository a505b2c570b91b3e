import { expect } from 'chai';
import { Client } from 'undici';
import { startCanary } from '../support/canary';
import { startGateway, type TestGateway } from '../support/gateway';
import { rawRequest, statusOf } from '../support/raw';
import { NODE_INSIDE, OPEN_SANDBOX_GATEWAY, type RunningSandbox, runningSandbox } from '../support/sandboxes';
import { until } from '../support/until';

const PORT = 28_741;
const DOMAIN = 'boxes.test';

describe('a port with its own host name', () => {
  let gateway: TestGateway;
  let client: Client;
  let box: RunningSandbox;
  let opened: { url: string; headers: Record<string, string> };

  before(async () => {
    const env = { SANDBOX_DOMAIN: DOMAIN, PUBLIC_URL: 'https://gate.test:8443/' };
    gateway = await startGateway({ env, ...OPEN_SANDBOX_GATEWAY });
    client = new Client(gateway.url);
    box = await runningSandbox(gateway);
    const server = `require('http').createServer((q, a) => a.end(q.url)).listen(${PORT}, '127.0.0.1')`;
    await box.run(`exec "${NODE_INSIDE}" -e "${server}"`, { background: true });
    opened = (await box.get(`/ports/${PORT}`)).json;
    await until('the server is up', async () => (await ask('/')).status === 200);
  });

  after(async () => {
    await box.end();
    await client.close();
    await gateway.stop();
  });

  const ask = async (path: string, host = `${PORT}-${box.id}.${DOMAIN}`) => {
    const { statusCode, headers, body } = await client.request({
      method: 'GET',
      path,
      headers: { ...opened.headers, host },
    });
    return { status: statusCode, headers, text: await body.text() };
  };

  it('has an address with the scheme and port of PUBLIC_URL', () => {
    expect(opened.url).to.equal(`https://${PORT}-${box.id}.${DOMAIN}:8443/`);
  });

  it('receives every path, including paths that the gateway itself serves at its own host', async () => {
    for (const path of ['/', '/v1/offerings', '/v1/messages?a=b', '/healthz', '/openapi.json']) {
      const answer = await ask(path);
      expect([answer.status, answer.text]).to.deep.equal([200, path]);
    }
    expect((await ask('/')).headers).to.not.have.property('content-security-policy');
  });

  it('is reached only if the host names a valid port of the sandbox: other hosts below the domain get 400 or 404', async () => {
    for (const host of [
      `x.${DOMAIN}`,
      `${PORT + 1}-${box.id}.${DOMAIN}`,
      `99999-${box.id}.${DOMAIN}`,
      `a.${PORT}-${box.id}.${DOMAIN}`,
    ]) {
      expect((await ask('/v1/offerings', host)).status).to.be.oneOf([400, 404]);
    }
  });

  it('is reached with upper-case and lower-case letters, and with a port number in the Host header', async () => {
    expect((await ask('/x', `${PORT}-${box.id.toUpperCase()}.Boxes.Test:8443`)).text).to.equal('/x');
  });

  it('leads to no other server, whatever text the request target has before its first slash, even on an upgrade', async () => {
    const canary = await startCanary();
    const headers = { ...opened.headers, host: `${PORT}-${box.id}.${DOMAIN}` };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const upgrade = 'connection: upgrade\r\nupgrade: websocket\r\n';
    const before = [
      ...['', '0', 'x', '@', '\\', '\t', '\0', '\xa0', '\xff', '?', '#'],
      '*:',
      '*#',
      '*?',
      '*.',
      '*\\',
      'http:',
      'http://',
      `http://${headers.host}`,
      '/',
      '//',
      '/\\',
    ];
    const ask = async (target: string, more: string) => {
      const sent = Buffer.from(`GET ${target} HTTP/1.1\r\n${lines.join('')}${more}\r\n`, 'latin1');
      const answer = await rawRequest(gateway.url, sent);
      expect(answer, JSON.stringify(target)).to.not.include(canary.word);
      expect(statusOf(answer), JSON.stringify(target)).to.be.oneOf(target.startsWith('/') ? [200] : [0, 400]);
    };
    for (const text of before) {
      await ask(`${text}@${canary.host}/latest`, 'connection: close\r\n');
      await ask(`${text}@${canary.host}/latest`, upgrade);
    }
    expect(canary.connections()).to.equal(0);
    await canary.stop();
  });
});
