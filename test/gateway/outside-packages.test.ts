import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { ask } from '../support/calls';
import { temporaryFolder } from '../support/configuration-folder';
import { builtServer } from '../support/shared';
import { textOf } from '../support/sources';
import { useGateway, useUpstream } from '../support/story';
import { chatAnswer } from '../support/upstream';

/** Returns the source of a package with two plugins, two policies that share a field, and an adapter. */
const PACKAGE = (dist: string) => `
const { manifest } = require('${dist}/exports/manifest.js');
const { definePlugin } = require('${dist}/exports/plugin.js');
const { definePolicy } = require('${dist}/exports/policy.js');
const { declareErrors } = require('${dist}/exports/errors.js');
const { sendJson } = require('${dist}/exports/http.js');
const chat = require('${dist}/plugins/upstreams/chat.js').default;
const { fail, codes } = declareErrors({
  SUBJECT_REFUSED: { status: 403, type: 'permission_error', retryable: false, summary: 'Nobody talks about this here.' },
});
const none = { type: 'object', properties: {} };
const says = (name) => definePlugin({
  contract: 'plugin/1', name, summary: 'Says a word.',
  schema: { type: 'object', properties: { word: { type: 'string', default: 'hello' } } },
  routes: ({ word }) => [{
    listener: 'public', auth: 'none', method: 'GET', path: '/' + name, summary: 'Says a word.', answers: { 200: { description: 'The word.' } },
    errors: codes,
    handle: async (visit, request, response) => {
      if (visit.query.has('refuse')) throw fail('SUBJECT_REFUSED');
      sendJson(response, 200, { word });
    },
  }],
});
module.exports = manifest({
  name: 'outside',
  plugins: [says('one'), says('other')],
  policies: [
    definePolicy({
      contract: 'policy/1', name: 'read-subject', summary: 'What is it about?', schema: none,
      needs: ['request'], provides: ['subject'],
      prepare: () => (call) => {
        const body = call.request.read();
        return { subject: body === undefined ? 'too large to read' : body.messages[0].content };
      },
    }),
    definePolicy({
      contract: 'policy/1', name: 'refuse-subject', summary: 'May it be about this?', schema: none,
      needs: ['subject'], provides: [],
      prepare: () => (call) => {
        if (call.subject !== 'weather') throw fail('SUBJECT_REFUSED', { details: { subject: call.subject } });
      },
    }),
  ],
  adapters: [{ ...chat, name: 'outside-chat' }],
});
`;

describe('A third-party package with plugins, policies and an adapter', () => {
  const upstream = useUpstream();
  let key: string;

  const gateway = useGateway(async () => {
    upstream.always(chatAnswer());
    const folder = temporaryFolder({ 'index.js': PACKAGE(dirname(await builtServer())) });
    const { plugins } = parse(textOf('system.config.yml'));
    return {
      upstreams: { acme: { url: upstream.url, adapter: 'outside-chat' } },
      configure: (config) => {
        config['policies'].push('read-subject', 'refuse-subject');
        const { policies } = config['pipelines'].quality;
        policies.splice(2, 0, { 'read-subject': null }, { 'refuse-subject': null });
      },
      system: { plugins: { ...plugins, outside: { package: join(folder, 'index.js'), other: { word: 'good day' } } } },
    };
  });

  before(async () => {
    ({ key } = await gateway.newCustomer('1'));
  });

  const call = (content: string) =>
    gateway.call('/v1/chat/completions', { key, body: ask({ messages: [{ role: 'user', content }] }) });

  it("gets the settings of each plugin by the plugin's name", async () => {
    const said = await Promise.all(['/one', '/other'].map((path) => gateway.call(path, { method: 'GET' })));
    expect(said.map(({ json }) => json)).to.deep.equal([{ word: 'hello' }, { word: 'good day' }]);
  });

  it('can read the body, pass a field from one policy to the other, and serve a call with its adapter', async () => {
    const answer = await call('weather');
    expect(answer.status, answer.text).to.equal(200);
    expect(upstream.calls.at(-1)?.path).to.equal('/v1/chat/completions');
  });

  it('can refuse a call with its own error, which costs nothing and is recorded', async () => {
    const before = await gateway.balance(key);
    const answer = await call('money');
    expect([answer.status, answer.json.error.code]).to.deep.equal([403, 'SUBJECT_REFUSED']);
    expect(answer.json.error).to.deep.include({
      type: 'permission_error',
      message: 'Nobody talks about this here.',
      details: { subject: 'money' },
      retryable: false,
    });
    expect(await gateway.balance(key)).to.deep.equal(before);
    const record = await gateway.record(key, String(answer.headers['x-svc-request-id']));
    expect(record).to.include({ errorCode: 'SUBJECT_REFUSED', status: 403 });
  });

  it('cannot read a body above 1 MiB', async () => {
    const answer = await call('x'.repeat(1_100_000));
    expect(answer.json.error.details).to.deep.equal({ subject: 'too large to read' });
  });

  it('has its errors in the OpenAPI documents', async () => {
    const { json } = await gateway.call('/openapi.json', { method: 'GET' });
    expect(json.components.schemas.ErrorCode.enum).to.include('SUBJECT_REFUSED');
    expect(json.paths['/one'].get.responses['403'].description).to.include('Nobody talks about this here.');
    expect(json['x-errors']).to.deep.include({
      code: 'SUBJECT_REFUSED',
      status: 403,
      type: 'permission_error',
      retryable: false,
      summary: 'Nobody talks about this here.',
    });
  });

  it('can answer with its own error from a route that it adds', async () => {
    const { status, json } = await gateway.call('/one?refuse', { method: 'GET' });
    expect([status, json.error.code]).to.deep.equal([403, 'SUBJECT_REFUSED']);
  });
});
