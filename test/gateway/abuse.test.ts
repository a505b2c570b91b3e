import { connect } from 'node:net';
import { expect } from 'chai';
import { ask } from '../support/calls';
import { startGateway, type TestGateway, UPSTREAM_CREDENTIAL } from '../support/gateway';
import { until } from '../support/until';
import {
  chatStream,
  messagesAnswer,
  messagesFailure,
  messagesStream,
  respond,
  startUpstream,
  type TestUpstream,
} from '../support/upstream';

describe('The gateway under abuse', function () {
  this.timeout(60_000);
  let upstream: TestUpstream;
  let gateway: TestGateway;

  before(async () => {
    upstream = await startUpstream();
    gateway = await startGateway({ upstreams: { acme: { url: upstream.url } }, env: { LOG_LEVEL: 'debug' } });
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });
  beforeEach(() => upstream.reset());

  it('keeps prompts, answers, keys and headers out of logs, records and errors', async () => {
    const canary = 'canary-7f3a9';
    const { key } = await gateway.newCustomer('10');
    const metadata = { user_id: JSON.stringify({ device_id: canary, account_uuid: canary }) };
    const body = ask({ messages: [{ role: 'user', content: canary }], stream: false, metadata });
    // The gateway records ids of sessions, but this value does not look like an id.
    const headers = { 'anthropic-beta': canary, cookie: canary, 'session-id': `${canary} of Ana` };
    upstream.next(
      messagesAnswer({ text: canary }),
      messagesFailure(500, { message: canary }),
      messagesFailure(500, { message: canary }),
    );
    expect((await gateway.call('/v1/messages', { key, body, headers })).status).to.equal(200);
    const failed = await gateway.call('/v1/messages', { key, body, headers });
    expect(failed.status).to.equal(502);
    expect(failed.text).not.to.include(canary);
    upstream.next(messagesStream({ texts: [canary], cutAfter: 4, cut: 'reset' }));
    await gateway.call('/v1/messages', { key, body: { ...body, stream: true }, headers });
    await gateway.call('/v1/messages', { key, body: `{"model":"acme-large","x":"${canary}`, headers });
    const records = await until('four records', async () => {
      const list = await gateway.call('/v1/usage', { method: 'GET', key });
      return list.json.items.length === 4 ? list.text : undefined;
    });
    for (const text of [records, gateway.output()]) {
      for (const secret of [canary, key, UPSTREAM_CREDENTIAL, gateway.adminToken]) expect(text).not.to.include(secret);
    }
  });

  it('shows a key nothing of another account', async () => {
    const [one, two] = [await gateway.newCustomer('10'), await gateway.newCustomer('10')];
    upstream.next(messagesAnswer());
    const answer = await gateway.call('/v1/messages', { key: one.key, body: ask() });
    const id = answer.headers['x-svc-request-id'] ?? '';
    await gateway.record(one.key, id);
    expect((await gateway.call(`/v1/usage/${id}`, { method: 'GET', key: two.key })).status).to.equal(404);
    expect(
      (await gateway.call(`/v1/usage?key=${one.keyId}`, { method: 'GET', key: two.key })).json.items,
    ).to.deep.equal([]);
    expect((await gateway.call('/v1/usage.csv', { method: 'GET', key: two.key })).text).not.to.include(id);
  });

  it('refuses a body of the admin API that is too large, compressed or has an unknown field', async () => {
    const answer = await gateway.admin('POST', '/admin/v1/accounts', { name: 'x'.repeat(100_000) });
    expect(answer.status).to.equal(413);
    const compressed = await fetch(`${gateway.adminUrl}/admin/v1/accounts`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.adminToken}`, 'content-encoding': 'gzip' },
      body: '{}',
    });
    expect(compressed.status).to.equal(415);
    expect((await gateway.admin('POST', '/admin/v1/accounts', { name: 'x', balance: '1' })).json.error.param).to.equal(
      'balance',
    );
    expect((await gateway.admin('POST', '/admin/v1/accounts', {})).json.error.param).to.equal('name');
  });

  it('closes connections of one address above their limit, at each listener for itself', async () => {
    const system = { connections: { mostOfAddress: 3 } };
    const limited = await startGateway({ upstreams: { acme: { url: upstream.url } }, system });
    try {
      const ask = 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n';
      for (const url of [limited.adminUrl, limited.url]) {
        const port = Number(new URL(url).port);
        const sockets = [1, 2, 3, 4].map(() => connect({ port, host: '127.0.0.1', localAddress: '127.0.0.9' }));
        const answered = sockets.map(
          (socket) =>
            new Promise<boolean>((resolve) => {
              socket.once('data', () => resolve(true)).once('close', () => resolve(false));
              socket.on('error', () => undefined).write(ask);
            }),
        );
        expect((await Promise.all(answered)).filter((isAnswered) => isAnswered)).to.have.length(3);
        for (const socket of sockets) socket.destroy();
      }
      const { text } = await limited.admin('GET', '/metrics');
      expect(text).to.include('tollgate_connections_refused_total{limit="mostOfAddress"} 2');
    } finally {
      await limited.stop();
    }
  });

  it('answers 400 to two Host headers on both listeners', async () => {
    for (const url of [gateway.url, gateway.adminUrl]) {
      const answer = await raw(url, 'GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n');
      expect(answer).to.match(/^HTTP\/1\.1 400 /);
    }
  });

  it('answers 404 at a host that only resembles a direct address, and asks no upstream', async () => {
    const { key } = await gateway.newCustomer('10');
    const body = JSON.stringify(ask());
    for (const host of ['nobody.p.localhost', 'ACME.P.elsewhere.example:8080', 'x.acme.p.localhost']) {
      const head = `POST /v1/messages HTTP/1.1\r\nHost: ${host}\r\nx-api-key: ${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nConnection: close\r\n\r\n`;
      expect(await raw(gateway.url, head + body)).to.match(/^HTTP\/1\.1 404 /);
    }
    expect(upstream.calls).to.have.length(0);
  });

  it('charges a stream that has the final event of its protocol but no stop reason', async () => {
    const { key } = await gateway.newCustomer('10');
    const whole = chatStream({ texts: ['one'], usage: { input: 1_000, output: 200 }, withUsage: true });
    const body = whole.events.join('').replaceAll('"finish_reason":"stop"', '"finish_reason":null');
    upstream.next(respond({ headers: { 'content-type': 'text/event-stream' }, body }));
    const answer = await gateway.call('/v1/chat/completions', { key, body: ask({ stream: true }) });
    expect(answer.text.trimEnd().endsWith('data: [DONE]')).to.equal(true);
    const record = await gateway.record(key, answer.headers['x-svc-request-id'] ?? '');
    expect(record).to.include({ billing: 'actual', cost: '0.00600000' });
  });
});

function raw(url: string, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(bytes));
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString();
    });
    socket.on('close', () => resolve(text));
    socket.on('error', reject);
  });
}
