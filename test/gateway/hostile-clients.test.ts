import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'chai';
import { makeApiKey } from '../../core/accounts/key-format';
import { PROTOCOLS as FACTS } from '../../core/catalog/protocols';
import { ask, askIn, PATH, PROTOCOLS } from '../support/calls';
import { MODEL, type RequestOptions, UPSTREAM_CREDENTIAL } from '../support/gateway';
import { linesOf, readMetrics } from '../support/metrics';
import { rawRequest, statusOf } from '../support/raw';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer, messagesFailure, messagesStream } from '../support/upstream';

const BODY = JSON.stringify(ask());

/** Calls whose framing two readers could understand differently. KEY stands for a valid key, BODY for a valid body. The fuzzer tries further ones. */
const FORMS: Readonly<Record<string, readonly string[]>> = {
  'a length and chunks': ['Content-Length: 5', 'Transfer-Encoding: chunked', '', '0', '', ''],
  'two different lengths': ['Content-Length: 5', 'Content-Length: 6', '', '123456'],
  'a list of lengths': ['Content-Length: 5, 5', '', '12345'],
  'a length with a sign': ['Content-Length: +5', '', '12345'],
  'chunked that is not last': ['Transfer-Encoding: chunked, identity', '', '0', '', ''],
  'chunked twice': ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked', '', 'CHUNKS'],
  'a space before the colon': ['Transfer-Encoding : chunked', '', 'CHUNKS'],
  'a folded header': ['Transfer-Encoding:', ' chunked', '', 'CHUNKS'],
  'a NUL': ['X: a\0b', 'Content-Length: 0', '', ''],
  'a line feed alone': ['X: a\nContent-Length: 5', '', '12345'],
  'a chunk longer than it says': ['Transfer-Encoding: chunked', '', '3', 'BODY', '0', '', ''],
  'a length after the body': ['Transfer-Encoding: chunked', '', 'CHUNK', '0', 'Content-Length: 5', '', ''],
  'the key for this connection only': ['Connection: x-api-key', 'Content-Length: LENGTH', '', 'BODY'],
  'two credentials': ['Authorization: Bearer KEY', 'Authorization: Bearer KEY', 'Content-Length: LENGTH', '', 'BODY'],
  'two hosts': ['Host: other', 'Content-Length: LENGTH', '', 'BODY'],
};

/** Request targets that are neither a path, nor a whole address of `http` or `https`, nor the `*` of OPTIONS. */
const TARGETS = [
  '*',
  '*@127.0.0.1:9/x',
  '*x/v1/messages',
  'http:///v1/messages',
  'file:///etc/passwd',
  'http://user@x/v1/messages',
  'http:/v1/messages',
  'v1/messages',
  '@x/v1/messages',
  '\xe9/v1/messages',
  'x:80',
];

function filled(line: string, key: string): string {
  const size = Buffer.byteLength(BODY);
  const chunk = `${size.toString(16)}\r\n${BODY}`;
  const words = { CHUNKS: `${chunk}\r\n0\r\n\r\n`, CHUNK: chunk, BODY, LENGTH: String(size), KEY: key };
  return line.replace(/CHUNKS|CHUNK|BODY|LENGTH|KEY/g, (word) => words[word as keyof typeof words]);
}

/** How many connections one address may have in these tests. */
const MAX_PER_ADDRESS = 50;

describe('Hostile clients', function () {
  this.timeout(90_000);
  const place = { project: 'acme-1', region: 'global' };
  const upstream = useUpstream();
  const gateway = useGateway(() => ({
    env: { LOG_LEVEL: 'debug' },
    system: { connections: { maxPerAddress: MAX_PER_ADDRESS } },
    upstreams: {
      acme: { url: upstream.url },
      google: { url: upstream.url, adapter: 'gemini', models: { 'gemini-pro': {} } },
      vertex: { url: upstream.url, adapter: 'vertex-gemini', adapterSettings: place, models: { 'vertex-pro': {} } },
    },
  }));
  let key: string;
  before(async () => {
    ({ key } = await gateway.newCustomer('10'));
  });
  beforeEach(() => {
    upstream.reset();
    upstream.always(messagesAnswer());
  });

  describe('Bad input', () => {
    interface Expected {
      readonly status: number;
      readonly type: string;
      readonly code: string;
      readonly param?: string;
    }
    type Case = readonly [title: string, path: string, options: RequestOptions, expected: Expected];

    async function expectError(path: string, options: RequestOptions, expected: Expected): Promise<void> {
      const answer = await gateway.call(path, options);
      expect(answer.status, answer.text).to.equal(expected.status);
      const { type, code, param } = answer.json.error;
      expect({ type, code, param }).to.deep.equal({
        type: expected.type,
        code: expected.code,
        param: expected.param ?? null,
      });
      expect(answer.json.type).to.equal('error');
      expect(answer.headers).to.include({
        'x-svc-source': 'platform',
        'content-type': 'application/json; charset=utf-8',
      });
      expect(answer.headers['x-svc-request-id']).to.match(/^req_[0-9a-f]{24}$/);
      expect(answer.headers).to.include({
        'x-svc-request-id': answer.json.request_id,
        'request-id': answer.json.request_id,
      });
      expect(answer.headers).to.have.property('x-should-retry');
      expect(upstream.calls).to.have.length(0);
    }

    const invalid = (param?: string, code = 'INVALID_FIELD'): Expected => ({
      status: 400,
      type: 'invalid_request_error',
      code,
      ...(param === undefined ? {} : { param }),
    });
    const json = invalid(undefined, 'INVALID_JSON');

    for (const protocol of PROTOCOLS) {
      const { conversation, limits } = FACTS[protocol];
      const limit = limits[0] ?? '';
      const asked = (more: Record<string, unknown>) => askIn(protocol, more);
      const bodies: readonly (readonly [string, unknown, Expected])[] = [
        ['broken JSON', '{"model": "acme-large", ', json],
        ['an array', '[1]', json],
        ['an empty body', '', json],
        ['257 levels', `{"model":"acme-large","${limit}":1,"${conversation}":${'['.repeat(257)}`, json],
        [
          'a repeated model',
          `{"model":"acme-large","mod\\u0065l":"x","${limit}":1,"${conversation}":[]}`,
          invalid('model'),
        ],
        ['no model', asked({ model: undefined }), invalid('model')],
        ['a model with a NUL, which Postgres cannot store', asked({ model: 'a\u0000b' }), invalid('model')],
        ['no conversation', asked({ messages: undefined }), invalid(conversation)],
        ['a conversation that is a number', asked({ messages: 7 }), invalid(conversation)],
        [
          'an unknown role',
          asked({ messages: [{ role: 'robot', content: 'Hello' }] }),
          invalid(`${conversation}[0].role`),
        ],
        ['a `stream` that is not a boolean', asked({ stream: 'yes' }), invalid('stream')],
        ['a limit that is not an integer', asked({ max_tokens: 1.5 }), invalid(limit)],
        ['a limit below 0', asked({ max_tokens: -1 }), invalid(limit)],
        ['tools that are not an array', asked({ tools: {} }), invalid('tools')],
        ['temperature 2.1', asked({ temperature: 2.1 }), invalid('temperature')],
        ['an unknown model', asked({ model: 'acme-lrage' }), invalid('model', 'MODEL_NOT_PRICED')],
        ['a tier without a price', asked({ service_tier: 'priority' }), invalid('service_tier', 'MODEL_NOT_PRICED')],
        ...(protocol === 'messages'
          ? ([['no max_tokens', asked({ max_tokens: undefined }), invalid('max_tokens')]] as const)
          : ([['a limit of 0', asked({ max_tokens: 0 }), invalid(limit)]] as const)),
      ];
      for (const [title, body, expected] of bodies)
        it(`gets ${expected.status} ${expected.code} in a ${protocol} call with ${title}`, () =>
          expectError(PATH[protocol], { key, body }, expected));
    }

    const unauthorised: Expected = { status: 401, type: 'authentication_error', code: 'INVALID_API_KEY' };
    const notFound: Expected = { status: 404, type: 'not_found_error', code: 'NOT_FOUND' };
    const unimplemented: Expected = { ...notFound, code: 'ENDPOINT_NOT_IMPLEMENTED' };
    const media: Expected = { ...invalid(undefined, 'UNSUPPORTED_MEDIA_TYPE'), status: 415 };
    const body = ask();
    const cases = (): readonly Case[] => [
      ['no key', '/v1/messages', { body }, unauthorised],
      ['a malformed key', '/v1/messages', { body, key: 'sk-svc-123' }, unauthorised],
      ['an unknown key with a valid checksum', '/v1/messages', { body, key: makeApiKey() }, unauthorised],
      ['a key with a space', '/v1/messages', { body, headers: { authorization: `Bearer ${key} x` } }, unauthorised],
      [
        'another content type',
        '/v1/messages',
        { key, body: 'model=x', headers: { 'content-type': 'text/plain' } },
        media,
      ],
      ['an unknown prefix', '/fastest/v1/messages', { key, body }, notFound],
      ['a path with capitals', '/V1/messages', { key, body }, notFound],
      ['a path with a slash at its end', '/v1/messages/', { key, body }, notFound],
      ['a route of the admin listener', '/admin/v1/accounts', { method: 'GET', key }, notFound],
      ['counting tokens, without a key', '/v1/messages/count_tokens', {}, unimplemented],
      ['counting tokens, by another method', '/cost/v1/messages/count_tokens', { method: 'DELETE' }, unimplemented],
    ];
    for (const [at, title] of cases().map(([each], index) => [index, each] as const))
      it(`gets the status and code of its error: ${title}`, async () => {
        const [, path, options, expected] = cases()[at] as Case;
        await expectError(path, options, expected);
      });

    it('gets 405 for a wrong method, and the answer names the right one', async () => {
      const answer = await gateway.call('/v1/messages', { method: 'GET', key });
      expect([answer.status, answer.headers['allow'], answer.json.error.code]).to.deep.equal([
        405,
        'POST',
        'METHOD_NOT_ALLOWED',
      ]);
    });

    it('does not include null in an optional member of Chat, nor a Chat temperature of 2', async () => {
      for (const more of [
        { temperature: null, stream: null, max_tokens: null, tools: null, n: null },
        { temperature: 2 },
      ])
        expect((await gateway.call('/v1/chat/completions', { key, body: ask(more) })).json.error?.code).to.not.equal(
          'INVALID_FIELD',
        );
    });
  });

  describe('Hostile or unusual HTTP', () => {
    const head = (version = '1.1') => `POST /v1/messages HTTP/${version}\r\nHost: x\r\ncontent-type: application/json`;

    function expectRefusal(answer: string, status: number, code: string) {
      expect(statusOf(answer), answer).to.equal(status);
      expect(answer.match(/HTTP\/1\.1 \d/g)).to.have.length(1);
      const envelope = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)) as { error: { code: string } };
      expect(envelope.error.code).to.equal(code);
      expect(answer.toLowerCase()).to.include('x-svc-source: platform').and.include('x-svc-request-id: req_');
    }

    for (const [what, lines] of Object.entries(FORMS)) {
      it(`with ${what} gets 400 in the gateway's error envelope, and no upstream is called`, async () => {
        const shown = what === 'two credentials' ? '' : `\r\nx-api-key: ${key}`;
        const rest = lines.map((line) => filled(line, key)).join('\r\n');
        // The bytes after the head must not count as another request.
        const answer = await rawRequest(gateway.url, Buffer.from(`${head()}${shown}\r\n${rest}`, 'latin1'));
        expect(statusOf(answer), answer).to.equal(400);
        expect(answer.match(/HTTP\/1\.1 \d/g)).to.have.length(1);
        expect(answer).to.match(/"code":"(?:MALFORMED_REQUEST|INVALID_FIELD)"/);
        expect(upstream.calls).to.have.length(0);
      });
    }

    describe('with an unusual request target', () => {
      const asked = (method: string, target: string, more = '') =>
        `${method} ${target} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;
      const upgrade = 'Connection: upgrade\r\nUpgrade: websocket\r\n';
      const good = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n';
      const refused = /^HTTP\/1\.1 400 .*"code":"(?:MALFORMED_REQUEST|INVALID_FIELD)"/s;

      it('gets 400 at both listeners if the target is neither a path nor a URL, even as an upgrade or pipelined request', async () => {
        const token = `Authorization: Bearer ${gateway.adminToken}\r\n`;
        const send = (url: string, text: string) => rawRequest(url, Buffer.from(text, 'latin1'));
        const methods = (target: string) => ['GET', 'POST', 'CONNECT', ...(target === '*' ? [] : ['OPTIONS'])];
        const heads = TARGETS.flatMap((target) =>
          methods(target).flatMap((method) => ['', upgrade, token].map((more) => asked(method, target, more))),
        );
        for (const url of [gateway.url, gateway.adminUrl])
          for (const head of heads) {
            expect(await send(url, head), head).to.match(refused);
            const after = await send(url, good + head);
            // A connection whose earlier request is still being answered may end instead.
            const further = [...after.matchAll(/^HTTP\/1\.1 (\d+) /gm)].slice(1).map(([, status]) => status);
            expect(further, head).to.deep.equal(further.length === 0 ? [] : ['400']);
          }
        expect(upstream.calls).to.have.length(0);
      });

      it('is accepted if the target is `*` with OPTIONS, or an absolute URL', async () => {
        const close = 'Connection: close\r\n';
        expect(statusOf(await rawRequest(gateway.url, asked('OPTIONS', '*', close)))).to.equal(404);
        for (const target of ['http://x/healthz', 'HTTPS://X:443/healthz', 'http://x/healthz?a=http://y/']) {
          expect(statusOf(await rawRequest(gateway.url, asked('GET', target, close))), target).to.equal(200);
        }
      });
    });

    it('in another HTTP version, or chunked in HTTP/1.0, gets 400', async () => {
      const plain = filled(`\r\nx-api-key: ${key}\r\ncontent-length: LENGTH\r\n\r\nBODY`, key);
      expectRefusal(await rawRequest(gateway.url, head('2.0') + plain), 400, 'MALFORMED_REQUEST');
      expectRefusal(await rawRequest(gateway.url, head('1.2') + plain), 400, 'MALFORMED_REQUEST');
      const chunks = filled(`\r\nx-api-key: ${key}\r\ntransfer-encoding: chunked\r\n\r\nCHUNKS`, key);
      expectRefusal(await rawRequest(gateway.url, head('1.0') + chunks), 400, 'INVALID_FIELD');
      expectRefusal(
        await rawRequest(gateway.url, 'POST / HTTP/1.1\r\nconnection: close\r\n\r\n'),
        400,
        'INVALID_FIELD',
      );
      expect(upstream.calls).to.have.length(0);
    });

    it('gets 431 if its head is too large, and 417 for an unknown expectation', async () => {
      const large = `${head()}\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`;
      expectRefusal(await rawRequest(gateway.url, large), 431, 'HEADERS_TOO_LARGE');
      const expecting = `${head()}\r\nexpect: wonders\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`;
      expectRefusal(await rawRequest(gateway.url, expecting), 417, 'EXPECTATION_FAILED');
    });

    it('is counted once and logged if the gateway refuses it before it has read the request', async () => {
      const before = await readMetrics(gateway);
      const large = await rawRequest(gateway.url, `${head()}\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`);
      await rawRequest(gateway.url, 'nonsense\r\n\r\n');
      await rawRequest(gateway.adminUrl, 'nonsense\r\n\r\n');
      await rawRequest(gateway.url, `${head()}\r\nexpect: wonders\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
      const after = await readMetrics(gateway);
      const counted = Object.entries({ HEADERS_TOO_LARGE: 1, MALFORMED_REQUEST: 2, EXPECTATION_FAILED: 1 });
      for (const [code, requests] of counted) {
        const name = `tollgate_api_requests_total{route="broken",method="other",status="4xx",code="${code}"}`;
        expect((after.get(name) ?? 0) - (before.get(name) ?? 0), code).to.equal(requests);
      }
      const requestId = /x-svc-request-id: (\S+)/.exec(large)?.[1];
      const line = await until('its line', () =>
        linesOf(gateway, 'request').find((each) => each['requestId'] === requestId),
      );
      expect(line).to.include({ route: 'broken', status: 431, code: 'HEADERS_TOO_LARGE' });
    });

    it('that expects 100-continue gets the interim answer 100 before the final answer', async () => {
      const rest = filled(
        `\r\nx-api-key: ${key}\r\nexpect: 100-continue\r\nconnection: close\r\ncontent-length: LENGTH`,
        key,
      );
      const answer = await rawRequest(gateway.url, `${head()}${rest}\r\n\r\n${BODY}`);
      expect(answer).to.match(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK/);
    });

    it('after a valid call on the same connection is refused, and the valid call is answered as usual', async () => {
      const { key: own } = await gateway.newCustomer('1');
      const good = filled(`${head()}\r\nx-api-key: ${own}\r\ncontent-length: LENGTH\r\n\r\nBODY`, own);
      const answer = await rawRequest(gateway.url, `${good}GARBAGE\r\n\r\n`);
      expect(answer).not.to.match(/HTTP\/1\.1 200.*HTTP\/1\.1 200/s);
      // The gateway may close the connection before the good call has reached the upstream.
      const records = async () => (await gateway.call('/v1/usage', { method: 'GET', key: own })).json.items;
      await until('the good call has its record', async () => (await records()).length === 1);
      expect(upstream.calls.length).to.be.at.most(1);
    });

    it('on ten connections, each with 1,000 pipelined requests without an API key, does not delay another client', async () => {
      const { hostname, port } = new URL(gateway.url);
      const refused = 'POST /v1/messages HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}';
      let refusals = 0;
      const floods = await Promise.all(
        Array.from({ length: 10 }, async () => {
          const flood = connect(Number(port), hostname);
          flood.on('data', (piece) => {
            refusals += piece.toString('latin1').split('HTTP/1.1 401').length - 1;
          });
          await once(flood, 'connect');
          return flood;
        }),
      );
      expect((await gateway.call('/v1/messages', { key, body: BODY })).status).to.equal(200);
      for (const flood of floods) flood.write(refused.repeat(1_000));
      expect((await gateway.call('/v1/messages', { key, body: BODY })).status).to.equal(200);
      const meanwhile = refusals;
      await until('all are answered', () => refusals === 10_000, 30_000);
      expect(meanwhile).to.be.below(2_000);
      for (const flood of floods) flood.destroy();
    });
  });

  describe('A client', () => {
    it('whose calls contain secrets leaves no prompts, answers, keys or headers in logs, records and errors', async () => {
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
        for (const secret of [canary, key, UPSTREAM_CREDENTIAL, gateway.adminToken])
          expect(text).not.to.include(secret);
      }
    });

    it('cannot see anything of another account with its key', async () => {
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

    it('loses connections above the limit for its address, which each listener counts separately', async () => {
      const request = 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n';
      for (const url of [gateway.adminUrl, gateway.url]) {
        const at = { port: Number(new URL(url).port), host: '127.0.0.1', localAddress: '127.0.0.9' };
        const sockets = Array.from({ length: MAX_PER_ADDRESS + 1 }, () => connect(at));
        const answered = sockets.map(
          (socket) =>
            new Promise<boolean>((resolve) => {
              socket.once('data', () => resolve(true)).once('close', () => resolve(false));
              socket.on('error', () => undefined).write(request);
            }),
        );
        expect((await Promise.all(answered)).filter((isAnswered) => isAnswered)).to.have.length(MAX_PER_ADDRESS);
        for (const socket of sockets) socket.destroy();
      }
      const metrics = await readMetrics(gateway);
      expect(metrics.get('tollgate_connections_refused_total{limit="maxPerAddress"}')).to.equal(2);
    });
  });

  describe('An address of an image or document', () => {
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

    /** Every place of an address, and how an error names it. The fuzzer tries further ones. */
    const PLACES: readonly (readonly [path: string, part: string, param: string])[] = [
      ['/v1/messages', '{"type":"image","source":{"type":"url","url":"URL"}}', 'source.url'],
      ['/v1/messages', '{"source":{"url":"URL","type":"url"},"type":"document"}', 'source.url'],
      [
        '/v1/messages',
        '{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"type":"url","url":"URL"}}]}',
        'content[0].source.url',
      ],
      ['/v1/chat/completions', '{"type":"image_url","image_url":{"url":"URL"}}', 'image_url.url'],
      ['/v1/chat/completions', '{"type":"image_url","image_url":"URL"}', 'image_url'],
      ['/v1/chat/completions', '{"type":"file","file":{"file_data":"URL"}}', 'file.file_data'],
      [
        '/v1/chat/completions',
        '{"type":"input_audio","input_audio":{"data":"URL","format":"wav"}}',
        'input_audio.data',
      ],
      ['/v1/chat/completions', '{"type":"media","fileData":{"fileUri":"URL"}}', 'fileData.fileUri'],
      ['/v1/responses', '{"type":"input_image","image_url":"URL"}', 'image_url'],
      ['/v1/responses', '{"type":"input_file","file_url":"URL"}', 'file_url'],
    ];
    const FOREIGN = ['gs://bucket/x.png', 'GS://bucket/x.png', 's3://bucket/x.png', 'file:///etc/passwd'];

    const expectRefused = async (answer: Awaited<ReturnType<typeof askWith>>, param: string, expected: RegExp) => {
      expect([answer.status, answer.json.error?.code, answer.json.error?.param], answer.text).to.deep.equal([
        400,
        'INVALID_FIELD',
        param,
      ]);
      expect(answer.json.error.message).to.match(expected).and.include(param);
      expect(upstream.calls).to.have.length(0);
    };

    for (const [path, part, member] of PLACES) {
      const param = `${path === '/v1/responses' ? 'input' : 'messages'}[0].content[0].${member}`;
      it(`is refused at ${param} of ${path} if it is no http, https or data URL`, async () => {
        for (const url of FOREIGN)
          await expectRefused(await askWith(path, [JSON.parse(part.replace('URL', url))]), param, /expected/);
      });
    }

    it('is refused in every malformed spelling that a vendor could read as an address of the platform', async () => {
      const forms = [
        'g\ts://bucket/x',
        'gs:\n//bucket/x',
        '//storage.googleapis.com/b/x',
        '',
        'https:gs://bucket/x',
        'https://x.example\\@storage.googleapis.com/b/x',
        'data:video/mp4;base64,AAAA',
        'data:,x',
        'javascript:1',
      ];
      for (const url of forms)
        await expectRefused(
          await askWith('/v1/chat/completions', [{ type: 'image_url', image_url: { url } }]),
          'messages[0].content[0].image_url.url',
          /expected/,
        );
    });

    it("is refused if a vendor would open it with the platform's credential: vendor files, upstream, unsigned Cloud Storage", async () => {
      const opened = [
        'https://generativelanguage.googleapis.com/v1beta/files/abc',
        'https://generativelanguage%2Egoogleapis.com/v1beta/files/abc',
        'https://generativelanguage\u3002googleapis\uff0ecom/v1beta/files/abc',
        'https://api.openai.com/v1/files/file-1/content',
        'https://api.anthropic.com/v1/%66iles/file_1/content',
        `${upstream.url}/v1/files/file-1`,
        'http://2130706433/v1/files/file-1',
        'https://storage.googleapis.com/bucket/x.png',
        'https://storage.googleapis.com/bucket/x.png?x=X-Goog-Signature',
      ];
      for (const url of opened)
        await expectRefused(
          await askWith('/v1/messages', [{ type: 'image', source: { type: 'url', url } }]),
          'messages[0].content[0].source.url',
          /platform's credential/,
        );
    });

    it("is refused in a call that would be translated, and in a member that the gateway's request tables lack", async () => {
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
      expect((await gateway.balance(key)).heldUsd).to.equal('0.00000000');
    });

    it('is forwarded unchanged if it is public, signed, or data with the type of an image or document', async () => {
      const taken = [
        'https://x.example/a b.png',
        'HTTP://x.example:8080/x?y=gs://z',
        'https://notstorage.googleapis.com.example/x',
        'https://storage.googleapis.com/bucket/x.png?X-Goog-Algorithm=a&X-Goog-Signature=b',
        `https://x.example/${'x'.repeat(5_000)}`,
        'data:image/png;base64,iVBORw0KGgo=',
        'data:application/pdf;base64,JVBERi0=',
      ];
      for (const url of taken) {
        upstream.reset();
        upstream.always(messagesAnswer());
        await askWith('/v1/messages', [{ type: 'image', source: { type: 'url', url } }]);
        expect(upstream.calls[0]?.json, url).to.have.nested.property('messages[0].content[0].source.url', url);
      }
      for (const data of ['UklGRg==', 'data:audio/wav;base64,UklGRg==']) {
        upstream.reset();
        upstream.always(messagesAnswer());
        await askWith('/v1/chat/completions', [{ type: 'input_audio', input_audio: { data, format: 'wav' } }]);
        expect(upstream.calls[0]?.json, data).to.have.nested.property('messages[0].content[0].input_audio.data', data);
      }
    });

    it('counts as text outside of image and document parts: in texts, tool results and tool arguments', async () => {
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
});
