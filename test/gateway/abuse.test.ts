import { connect } from 'node:net';
import { expect } from 'chai';
import { ask } from '../support/calls';
import { MODEL, startGateway, type TestGateway, UPSTREAM_CREDENTIAL } from '../support/gateway';
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

describe('An address of an image or document', function () {
  this.timeout(90_000);
  let upstream: TestUpstream;
  let gateway: TestGateway;
  let key: string;

  before(async () => {
    upstream = await startUpstream();
    upstream.always(messagesAnswer());
    const place = { project: 'acme-1', region: 'global' };
    gateway = await startGateway({
      upstreams: {
        acme: { url: upstream.url },
        google: { url: upstream.url, adapter: 'gemini', models: { 'gemini-pro': {} } },
        vertex: { url: upstream.url, adapter: 'vertex-gemini', adapterSettings: place, models: { 'vertex-pro': {} } },
      },
    });
    ({ key } = await gateway.newCustomer('10'));
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });
  beforeEach(() => upstream.reset());

  const askWith = (path: string, parts: unknown, model = MODEL, more: object = {}) => {
    const isResponses = path === '/v1/responses';
    const turn = [{ role: 'user', content: parts }];
    const body = {
      model,
      ...(isResponses ? { max_output_tokens: 9, input: turn } : { max_tokens: 9, messages: turn }),
      ...more,
    };
    return gateway.call(path, { key, body });
  };

  /** Every place of an address: the path of a call, the part, and the place that an error names. */
  const PLACES: readonly (readonly [path: string, partOf: (url: string) => object, param: string])[] = [
    ['/v1/messages', (url) => ({ type: 'image', source: { type: 'url', url } }), 'messages[0].content[0].source.url'],
    [
      '/v1/messages',
      (url) => ({ source: { url, type: 'url' }, type: 'document' }),
      'messages[0].content[0].source.url',
    ],
    [
      '/v1/messages',
      (url) => ({
        type: 'tool_result',
        tool_use_id: 't',
        content: [
          { type: 'text', text: 'x' },
          { type: 'image', source: { type: 'url', url } },
        ],
      }),
      'messages[0].content[0].content[1].source.url',
    ],
    [
      '/v1/messages',
      (url) => ({
        type: 'document',
        source: { type: 'content', content: [{ type: 'image', source: { type: 'url', url } }] },
      }),
      'messages[0].content[0].source.content[0].source.url',
    ],
    [
      '/v1/chat/completions',
      (url) => ({ type: 'image_url', image_url: { url } }),
      'messages[0].content[0].image_url.url',
    ],
    ['/v1/chat/completions', (url) => ({ type: 'image_url', image_url: url }), 'messages[0].content[0].image_url'],
    [
      '/v1/chat/completions',
      (url) => ({ type: 'file', file: { file_data: url } }),
      'messages[0].content[0].file.file_data',
    ],
    [
      '/v1/chat/completions',
      (url) => ({ type: 'file', file: { file_uri: url } }),
      'messages[0].content[0].file.file_uri',
    ],
    [
      '/v1/chat/completions',
      (data) => ({ type: 'input_audio', input_audio: { data, format: 'wav' } }),
      'messages[0].content[0].input_audio.data',
    ],
    [
      '/v1/chat/completions',
      (url) => ({ type: 'video_url', video_url: { url } }),
      'messages[0].content[0].video_url.url',
    ],
    [
      '/v1/chat/completions',
      (url) => ({ type: 'media', fileData: { fileUri: url } }),
      'messages[0].content[0].fileData.fileUri',
    ],
    [
      '/v1/chat/completions',
      (url) => ({ type: 'video', video: [{ s3Location: { uri: url } }] }),
      'messages[0].content[0].video[0].s3Location.uri',
    ],
    ['/v1/responses', (url) => ({ type: 'input_image', image_url: url }), 'input[0].content[0].image_url'],
    ['/v1/responses', (url) => ({ type: 'input_file', file_url: url }), 'input[0].content[0].file_url'],
    ['/v1/responses', (url) => ({ type: 'input_file', file_data: url }), 'input[0].content[0].file_data'],
  ];
  const FOREIGN = [
    'gs://bucket/x.png',
    'GS://bucket/x.png',
    's3://bucket/x.png',
    'file:///etc/passwd',
    'ftp://x.example/x',
  ];

  const expectRefused = async (answer: Awaited<ReturnType<typeof askWith>>, param: string, expected: RegExp) => {
    expect([answer.status, answer.json.error?.code, answer.json.error?.param], answer.text).to.deep.equal([
      400,
      'INVALID_FIELD',
      param,
    ]);
    expect(answer.json.error.message).to.match(expected).and.include(param);
    expect(upstream.calls).to.have.length(0);
  };

  for (const [path, partOf, param] of PLACES) {
    it(`is refused at ${param} of ${path} if it is not one of the web`, async () => {
      for (const url of FOREIGN) await expectRefused(await askWith(path, [partOf(url)]), param, /expected/);
    });
  }

  it('is refused in every other form that a reader could take for one of the platform', async () => {
    const forms = [
      ' gs://bucket/x.png',
      'g\ts://bucket/x',
      'gs:\n//bucket/x',
      '//storage.googleapis.com/b/x',
      'bucket/x.png',
      '',
      'https:gs://bucket/x',
      'https:\\\\x.example\\y',
      'https://x.example\\@storage.googleapis.com/b/x',
      'https://a@x.example@storage.googleapis.com/b',
      'data:video/mp4;base64,AAAA',
      'data:audio/wav;base64,AAAA',
      'data:;base64,AAAA',
      'data:image%2Fpng;base64,AAAA',
      'data:,x',
      'blob:https://x.example/1',
      'javascript:1',
    ];
    for (const url of forms)
      await expectRefused(
        await askWith('/v1/chat/completions', [{ type: 'image_url', image_url: { url } }]),
        'messages[0].content[0].image_url.url',
        /expected/,
      );
  });

  it('is refused if the platform opens it: files of vendors, the upstream itself, and unsigned Cloud Storage', async () => {
    const opened = [
      'https://generativelanguage.googleapis.com/v1beta/files/abc',
      'https://GenerativeLanguage.googleapis.com.:443/v1beta/files/abc',
      'http://user:pass@generativelanguage.googleapis.com/v1beta/files/abc',
      'https://generativelanguage%2Egoogleapis.com/v1beta/files/abc',
      'https://generativelanguage\u3002googleapis\uff0ecom/v1beta/files/abc',
      ' https://generativelanguage.googleapis.com/v1beta/files/abc',
      'https://api.openai.com/v1/files/file-1/content',
      'https://api.anthropic.com/v1/%66iles/file_1/content',
      `${upstream.url}/v1/files/file-1`,
      'http://2130706433/v1/files/file-1',
      'https://storage.googleapis.com/bucket/x.png',
      'https://bucket.storage.googleapis.com/x.png?X-Goog-Signature=',
      'https://storage.cloud.google.com/bucket/x.png',
      'https://storage.googleapis.com/bucket/x.png?x=X-Goog-Signature',
      'https://commondatastorage.googleapis.com/bucket/x',
      'https://www.googleapis.com/storage/v1/b/bucket/o/x?alt=media',
      `https://storage.googleapis.com/${'x'.repeat(5_000)}`,
    ];
    for (const url of opened)
      await expectRefused(
        await askWith('/v1/messages', [{ type: 'image', source: { type: 'url', url } }]),
        'messages[0].content[0].source.url',
        /platform's credential/,
      );
  });

  it('is refused where the call would be translated, and in a member that no table has', async () => {
    for (const model of ['gemini-pro', 'vertex-pro'])
      for (const url of ['gs://bucket/x.png', 'https://storage.googleapis.com/bucket/x.png'])
        await expectRefused(
          await askWith('/v1/messages', [{ type: 'image', source: { type: 'url', url } }], model),
          'messages[0].content[0].source.url',
          /expected/,
        );
    const extra = await askWith('/v1/chat/completions', 'Hi', MODEL, {
      google: { parts: [{ uri: 'gs://bucket/x.png' }] },
    });
    await expectRefused(extra, 'google', /expected/);
    const { json } = await gateway.call('/v1/balance', { method: 'GET', key });
    expect(json).to.include({ balanceUsd: '10.00000000', heldUsd: '0.00000000' });
  });

  it('passes as it came if it is public, signed, or data with the type of an image or document', async () => {
    const taken = [
      'https://x.example/a b.png',
      'HTTP://x.example:8080/x?y=gs://z',
      'https://user@x.example/x',
      'https://notstorage.googleapis.com.example/x',
      'https://storage.googleapis.com/bucket/x.png?X-Goog-Algorithm=a&X-Goog-Signature=b',
      'https://storage.googleapis.com/bucket/x.png?GoogleAccessId=a&Signature=b',
      `https://x.example/${'x'.repeat(5_000)}`,
      'data:image/png;base64,iVBORw0KGgo=',
      'DATA:image/svg+xml;charset=utf-8;base64,iVBORw0KGgo=',
      'data:application/pdf;base64,JVBERi0=',
      'data:text/plain,x',
    ];
    for (const url of taken) {
      upstream.reset();
      upstream.always(messagesAnswer());
      await askWith('/v1/messages', [{ type: 'image', source: { type: 'url', url } }]);
      expect(upstream.calls[0]?.json, url).to.have.nested.property('messages[0].content[0].source.url', url);
    }
    for (const data of [
      'UklGRg==',
      'data:audio/wav;base64,UklGRg==',
      'data:;base64,UklGRg==',
      'https://x.example/x.wav',
    ]) {
      upstream.reset();
      upstream.always(messagesAnswer());
      await askWith('/v1/chat/completions', [{ type: 'input_audio', input_audio: { data, format: 'wav' } }]);
      expect(upstream.calls[0]?.json, data).to.have.nested.property('messages[0].content[0].input_audio.data', data);
    }
  });

  it('is text where a part brings none: in texts, in results, and in the arguments of tools', async () => {
    const url = 'gs://bucket/x.png';
    const parts = [
      { type: 'text', text: url },
      { type: 'tool_use', id: 't', name: url, input: { url, image_url: { url } } },
      { type: 'tool_result', tool_use_id: 't', content: url },
      { type: 'search_result', source: url, title: url, content: [{ type: 'text', text: url }] },
      { type: 'document', title: url, source: { type: 'text', media_type: 'text/plain', data: url } },
      { type: 'browser_state', url: 'about:blank' },
    ];
    upstream.always(messagesAnswer());
    const answer = await askWith('/v1/messages', parts);
    expect(answer.status, answer.text).to.equal(200);
    expect(upstream.calls[0]?.json).to.have.nested.property('messages[0].content').that.deep.equals(parts);
  });
});
