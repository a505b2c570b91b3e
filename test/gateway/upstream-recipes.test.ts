import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse, stringify } from 'yaml';
import { validateConfiguration } from '../../core/serving/validate-configuration';
import { ask, PATH } from '../support/calls';
import { temporaryFolder } from '../support/configuration-folder';
import { useGateway, useUpstream } from '../support/story';
import { chatAnswer, embeddingsAnswer, messagesAnswer, responsesAnswer } from '../support/upstream';

const ROOT = join(__dirname, '../..');
const KEY = 'key-of-the-vendor';
const BEARER = { authorization: `Bearer ${KEY}` };
const API_KEY = { 'api-key': KEY };
const NONE = { authorization: undefined, 'x-api-key': undefined, 'api-key': undefined };

interface Recipe {
  readonly url: string;
  readonly adapter: string | readonly string[];
  readonly credential: { readonly env?: string };
  readonly models: Readonly<Record<string, { readonly maxOutput: number }>>;
}

/** The calls of each recipe: model, protocol, the path at which the call must arrive, and headers. */
const CALLS: Readonly<Record<string, readonly (readonly [string, string, string, object])[]>> = {
  openrouter: [
    [
      'qwen/qwen3-32b',
      'chat',
      '/api/v1/chat/completions',
      { ...BEARER, 'http-referer': 'https://gateway.example', 'x-title': 'Example' },
    ],
  ],
  vllm: [
    ['Qwen/Qwen3-8B', 'chat', '/v1/chat/completions', NONE],
    ['BAAI/bge-m3', 'embeddings', '/v1/embeddings', NONE],
  ],
  ollama: [
    ['llama3.1:8b', 'chat', '/v1/chat/completions', NONE],
    ['nomic-embed-text', 'embeddings', '/v1/embeddings', NONE],
  ],
  azure: [
    ['my-gpt', 'chat', '/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21', API_KEY],
    ['my-embeddings', 'embeddings', '/openai/deployments/my-embeddings/embeddings?api-version=2024-10-21', API_KEY],
  ],
  'azure-v1': [
    ['my-second-gpt', 'chat', '/openai/v1/chat/completions', API_KEY],
    ['my-second-gpt', 'responses', '/openai/v1/responses', API_KEY],
  ],
  groq: [['llama-3.3-70b-versatile', 'chat', '/openai/v1/chat/completions', BEARER]],
  mistral: [
    ['mistral-large-latest', 'chat', '/v1/chat/completions', BEARER],
    ['mistral-embed', 'embeddings', '/v1/embeddings', BEARER],
  ],
  deepseek: [
    ['deepseek-chat', 'chat', '/chat/completions', BEARER],
    ['deepseek-chat', 'messages', '/anthropic/v1/messages', { ...BEARER, 'anthropic-version': '2023-06-01' }],
  ],
  together: [
    ['meta-llama/Llama-3.3-70B-Instruct-Turbo', 'chat', '/v1/chat/completions', BEARER],
    ['intfloat/multilingual-e5-large-instruct', 'embeddings', '/v1/embeddings', BEARER],
  ],
  gemini: [
    ['gemini-2.5-flash', 'chat', '/v1beta/openai/chat/completions', BEARER],
    ['gemini-embedding-001', 'embeddings', '/v1beta/openai/embeddings', BEARER],
  ],
};

const ANSWERS = {
  chat: chatAnswer(),
  messages: messagesAnswer(),
  responses: responsesAnswer(),
  embeddings: embeddingsAnswer(),
};

const SENT: Readonly<Record<string, object>> = {
  chat: ask(),
  messages: ask(),
  responses: { input: 'Hello', max_output_tokens: 200, store: false },
  embeddings: { input: 'Hello' },
};

const TEXT = readFileSync(join(ROOT, 'examples/upstreams.yml'), 'utf8');

/** The adapters that ask a cloud by its own credentials and operations; their tests are those of the adapters. */
const CLOUD = /^(bedrock|vertex)/;

describe('The recipes of examples/upstreams.yml', () => {
  const all = parse(TEXT) as Record<string, Recipe>;
  const recipes = Object.fromEntries(Object.entries(all).filter(([, { adapter }]) => !CLOUD.test(String(adapter))));
  const upstream = useUpstream();
  let key: string;

  const gateway = useGateway(() => ({
    upstreams: {},
    configure: (config) => {
      config['serviceEndpoints'] = Object.fromEntries(
        Object.entries(recipes).map(([name, recipe]) => {
          const { pathname } = new URL(recipe.url);
          return [name, { ...recipe, url: upstream.url + pathname.replace(/\/$/, ''), allowPrivate: true }];
        }),
      );
    },
    env: Object.fromEntries(Object.values(recipes).flatMap(({ credential: { env } }) => (env ? [[env, KEY]] : []))),
  }));

  before(async () => {
    ({ key } = await gateway.newCustomer('10'));
  });
  beforeEach(() => upstream.reset());

  it('are valid configurations, including the recipes for clouds', () => {
    const shipped = parse(readFileSync(join(ROOT, 'gateway.config.yml'), 'utf8'));
    delete shipped.serviceEndpoints;
    expect(all).to.include.keys('bedrock', 'vertex', 'openrouter');
    const indented = TEXT.replace(/^(?=.)/gm, '  ');
    const folder = temporaryFolder({
      'gateway.config.yml': `${stringify(shipped)}serviceEndpoints:\n${indented}`,
      'system.config.yml': readFileSync(join(ROOT, 'system.config.yml'), 'utf8'),
    });
    expect(validateConfiguration(folder, {}).problems).to.deep.equal([]);
  });

  it('are all called by this test, with each of their models', () => {
    const called = Object.entries(CALLS).map(([name, calls]) => [name, [...new Set(calls.map(([model]) => model))]]);
    expect(called).to.deep.equal(Object.entries(recipes).map(([name, { models }]) => [name, Object.keys(models)]));
  });

  for (const [name, calls] of Object.entries(CALLS))
    for (const [model, protocol, path, headers] of calls)
      it(`send a call of ${model} in the protocol ${protocol} to ${name} at ${path}`, async () => {
        upstream.next(ANSWERS[protocol as keyof typeof ANSWERS]);
        const at = { ...PATH, embeddings: '/v1/embeddings' }[protocol] ?? '';
        const body = { ...SENT[protocol], model };
        const answer = await gateway.call(at, { key, body });
        expect(answer.status, answer.text).to.equal(200);
        expect(answer.headers['x-routing-provider']).to.equal(name);
        const [call] = upstream.calls;
        expect(call?.path).to.equal(path);
        expect(call?.json).to.deep.equal(body);
        for (const [header, value] of Object.entries(headers)) expect(call?.headers[header], header).to.equal(value);
        const shown = ['authorization', 'x-api-key', 'api-key'].filter((each) => call?.headers[each] !== undefined);
        expect(shown.length).to.be.at.most(1);
        const record = await gateway.record(key, answer.headers['x-svc-request-id'] ?? '');
        expect(record['billing']).to.equal('actual');
      });

  it('request the usage of a stream from other vendors, but not from Mistral', async () => {
    const stream = { ...ask(), stream: true };
    for (const model of ['mistral-large-latest', 'gemini-2.5-flash']) {
      upstream.next(chatAnswer());
      await gateway.call(PATH.chat, { key, body: { ...stream, model } });
    }
    expect(upstream.calls.map(({ json }) => Object.keys(json as object).includes('stream_options'))).to.deep.equal([
      false,
      true,
    ]);
  });

  it("relay a refusal of OpenRouter's moderation, and the credential stays available", async () => {
    const flagged = {
      error: { code: 403, message: 'Flagged', metadata: { reasons: ['x'], flagged_input: 'a bad word' } },
    };
    upstream.next({
      answer: async ({ response }) =>
        void response.writeHead(403, { 'content-type': 'application/json' }).end(JSON.stringify(flagged)),
    });
    const answer = await gateway.call(PATH.chat, { key, body: ask({ model: 'qwen/qwen3-32b' }) });
    expect(answer.status).to.equal(403);
    expect(answer.json).to.deep.equal(flagged);
    const { json } = await gateway.admin('GET', '/admin/v1/upstreams/openrouter');
    expect(json.credentials[0].state).to.equal('available');
  });
});
