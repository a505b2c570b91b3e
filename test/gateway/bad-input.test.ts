import { connect } from 'node:net';
import { expect } from 'chai';
import { makeApiKey } from '../../core/accounts/key-format';
import { PROTOCOLS as FACTS } from '../../core/catalog/protocols';
import { ask, askIn, PATH, PROTOCOLS, type TestProtocol } from '../support/calls';
import { type RequestOptions, startGateway, type TestGateway } from '../support/gateway';
import { chatAnswer, messagesAnswer, startUpstream, type TestUpstream } from '../support/upstream';

describe('Bad input', function () {
  this.timeout(60_000);
  let upstream: TestUpstream;
  let gateway: TestGateway;
  let key: string;

  before(async () => {
    upstream = await startUpstream();
    gateway = await startGateway({ upstreams: { acme: { url: upstream.url } } });
    ({ key } = await gateway.newCustomer('10'));
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });

  interface Expected {
    readonly status: number;
    readonly type: string;
    readonly code: string;
    readonly param?: string;
  }

  async function expectError(path: string, options: RequestOptions, expected: Expected): Promise<void> {
    const before = upstream.calls.length;
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
    expect(answer.headers['x-svc-request-id'])
      .to.equal(answer.json.request_id)
      .and.to.match(/^req_[0-9a-f]{24}$/);
    expect(answer.headers['request-id']).to.equal(answer.json.request_id);
    expect(answer.headers).to.have.property('x-should-retry');
    expect(upstream.calls).to.have.length(before);
  }

  const invalid = (param?: string): Expected => ({
    status: 400,
    type: 'invalid_request_error',
    code: 'INVALID_FIELD',
    ...(param === undefined ? {} : { param }),
  });
  const without = (protocol: TestProtocol, name: string) => {
    const { [name]: _, ...rest } = askIn(protocol);
    return rest;
  };

  for (const protocol of PROTOCOLS) {
    describe(`in a call of ${protocol}`, () => {
      const path = PATH[protocol];
      const { conversation, limits } = FACTS[protocol];
      const [limit] = limits;
      const bodies: [string, unknown, Expected][] = [
        ['broken JSON', '{"model": "acme-large", ', { ...invalid(), code: 'INVALID_JSON' }],
        ['an array', '[1]', { ...invalid(), code: 'INVALID_JSON' }],
        ['an empty body', '', { ...invalid(), code: 'INVALID_JSON' }],
        [
          'a repeated model',
          `{"model":"acme-large","mod\\u0065l":"x","${limit}":1,"${conversation}":[]}`,
          invalid('model'),
        ],
        ['no model', without(protocol, 'model'), invalid('model')],
        ['a model that is not a string', askIn(protocol, { model: 7 }), invalid('model')],
        ['no conversation', without(protocol, conversation), invalid(conversation)],
        ['a conversation that is a number', askIn(protocol, { messages: 7 }), invalid(conversation)],
        [
          'an unknown role',
          askIn(protocol, { messages: [{ role: 'robot', content: 'Hello' }] }),
          invalid(`${conversation}[0].role`),
        ],
        ['a `stream` that is not a boolean', askIn(protocol, { stream: 'yes' }), invalid('stream')],
        ['a limit that is not an integer', askIn(protocol, { max_tokens: 1.5 }), invalid(limit)],
        ['a limit below 0', askIn(protocol, { max_tokens: -1 }), invalid(limit)],
        ['tools that are not an array', askIn(protocol, { tools: {} }), invalid('tools')],
        [
          'an unknown model',
          askIn(protocol, { model: 'acme-lrage' }),
          { ...invalid('model'), code: 'MODEL_NOT_PRICED' },
        ],
        [
          'a service tier without a price',
          askIn(protocol, { service_tier: 'priority' }),
          { ...invalid('service_tier'), code: 'MODEL_NOT_PRICED' },
        ],
        [
          'JSON of 257 levels',
          `{"model":"acme-large","${limit}":1,"${conversation}":${'['.repeat(257)}`,
          { ...invalid(), code: 'INVALID_JSON' },
        ],
      ];
      if (protocol === 'messages') {
        bodies.push(
          ['no max_tokens', without(protocol, 'max_tokens'), invalid('max_tokens')],
          ['temperature 1.1', askIn(protocol, { temperature: 1.1 }), invalid('temperature')],
          ['a number as system prompt', askIn(protocol, { system: 7 }), invalid('system')],
        );
      } else {
        bodies.push(
          ['a limit of 0', askIn(protocol, { max_tokens: 0 }), invalid(limit)],
          ['temperature 2.1', askIn(protocol, { temperature: 2.1 }), invalid('temperature')],
        );
      }
      for (const [title, body, expected] of bodies) {
        it(`is ${expected.status} ${expected.code} for ${title}`, () => expectError(path, { key, body }, expected));
      }
    });
  }

  it('does not include null in an optional Chat member, which counts as absent, or a Chat temperature of 2', async () => {
    upstream.next(chatAnswer(), chatAnswer());
    const body = ask({ temperature: null, stream: null, max_tokens: null, tools: null, n: null });
    expect((await gateway.call('/v1/chat/completions', { key, body })).status).to.equal(200);
    expect((await gateway.call('/v1/chat/completions', { key, body: ask({ temperature: 2 }) })).status).to.equal(200);
  });

  describe('in the key of a call', () => {
    const unauthorised: Expected = { status: 401, type: 'authentication_error', code: 'INVALID_API_KEY' };
    const body = ask();
    it('gets 401 if there is no key', () => expectError('/v1/messages', { body }, unauthorised));
    it('gets 401 if the key is malformed', () =>
      expectError('/v1/messages', { body, key: 'sk-svc-123' }, unauthorised));
    it('gets 401 if the key is unknown and has a valid checksum', async () => {
      await expectError('/v1/messages', { body, key: makeApiKey() }, unauthorised);
    });
    it('gets 401 if the key contains a space', () =>
      expectError('/v1/messages', { body, headers: { authorization: `Bearer ${key} x` } }, unauthorised));
    it('gets 401 if two headers have different keys', () =>
      expectError('/v1/messages', { body, key, headers: { authorization: `Bearer ${key}x` } }, unauthorised));
    it('does not include the same key in two headers', async () => {
      upstream.next(messagesAnswer());
      const headers = { authorization: `Bearer ${key}`, 'svc-key': key };
      expect((await gateway.call('/v1/messages', { body, key, headers })).status).to.equal(200);
    });
  });

  describe('in size or kind of a body', () => {
    const tooLarge: Expected = { status: 413, type: 'invalid_request_error', code: 'BODY_TOO_LARGE' };
    const filled = (bytes: number) => {
      const start = '{"model":"acme-large","max_tokens":1,"messages":[{"role":"user","content":"';
      const end = '"}]}';
      return start + 'a'.repeat(bytes - start.length - end.length) + end;
    };

    it('begins above 20,971,520 bytes, which are accepted', async () => {
      upstream.next(messagesAnswer());
      const { key: rich } = await gateway.newCustomer('1000');
      const answer = await gateway.call('/v1/messages', { key: rich, body: filled(20_971_520) });
      expect(answer.status, answer.text).to.equal(200);
      expect(upstream.calls.at(-1)?.body.length).to.equal(20_971_520);
    });

    it('gets 413 at 20,971,521 bytes', () => expectError('/v1/messages', { key, body: filled(20_971_521) }, tooLarge));

    it('gets 400 for 20 MB of opening brackets, which exceed the depth limit', () =>
      expectError(
        '/v1/messages',
        { key, body: '['.repeat(20_000_000) },
        { status: 400, type: 'invalid_request_error', code: 'INVALID_JSON' },
      ));

    const unsupported: Expected = { status: 415, type: 'invalid_request_error', code: 'UNSUPPORTED_MEDIA_TYPE' };
    it('gets 415 for a content type that is not JSON', () =>
      expectError('/v1/messages', { key, body: 'model=x', headers: { 'content-type': 'text/plain' } }, unsupported));
    for (const encoding of ['compress', 'gzip, zstd', 'gzip, gzip', 'gzip;q=1', ''])
      it(`is 415 for the content encoding "${encoding}"`, () =>
        expectError('/v1/messages', { key, body: ask(), headers: { 'content-encoding': encoding } }, unsupported));
  });

  describe('in address or method', () => {
    const notFound: Expected = { status: 404, type: 'not_found_error', code: 'NOT_FOUND' };
    it('gets 404 for an unknown prefix', () => expectError('/fastest/v1/messages', { key, body: ask() }, notFound));
    it('gets 404 for a path with capitals or a trailing slash', async () => {
      await expectError('/V1/messages', { key, body: ask() }, notFound);
      await expectError('/v1/messages/', { key, body: ask() }, notFound);
    });
    it('gets 404 ENDPOINT_NOT_IMPLEMENTED for counting tokens, by any method and without a key', async () => {
      const expected = { ...notFound, code: 'ENDPOINT_NOT_IMPLEMENTED' };
      for (const method of ['POST', 'GET', 'DELETE']) {
        await expectError('/v1/messages/count_tokens', { method }, expected);
        await expectError('/cost/v1/messages/count_tokens', { method }, expected);
      }
    });
    it('gets 405 for a wrong method, and the answer names the right one', async () => {
      const answer = await gateway.call('/v1/messages', { method: 'GET', key });
      expect(answer.status).to.equal(405);
      expect(answer.headers['allow']).to.equal('POST');
      expect(answer.json.error.code).to.equal('METHOD_NOT_ALLOWED');
    });
    it('gets 404 for admin routes on the public listener, and 401 on the admin listener without its token', async () => {
      await expectError('/admin/v1/accounts', { method: 'GET', key }, notFound);
      for (const path of ['/admin/v1/accounts', '/users', '/policies', '/metrics']) {
        const answer = await fetch(`${gateway.adminUrl}${path}`, { headers: { authorization: `Bearer ${key}` } });
        expect(answer.status).to.equal(401);
      }
    });
  });

  it('is refused before the body arrives if its announced length is too large', async () => {
    const { port } = new URL(gateway.url);
    const answer = await raw(
      Number(port),
      `POST /v1/messages HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n`,
    );
    expect(answer).to.match(/^HTTP\/1\.1 413 /);
  });
});

/** Returns the first bytes of the answer. The gateway keeps the connection for some seconds for clients that continue to send. */
function raw(port: number, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    socket.once('data', (chunk) => {
      socket.destroy();
      resolve(chunk.toString());
    });
    socket.once('close', () => reject(new Error('no answer came')));
    socket.on('error', reject);
  });
}
