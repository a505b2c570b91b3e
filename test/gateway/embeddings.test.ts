import { expect } from 'chai';
import { encode } from 'gpt-tokenizer/encoding/cl100k_base';
import OpenAI from 'openai';
import { ask } from '../support/calls';
import { type Answered, MODEL } from '../support/gateway';
import { textOf } from '../support/sources';
import { useGateway, useUpstream } from '../support/story';
import {
  chatAnswer,
  chatFailure,
  embeddedTokens,
  embeddingsAnswer,
  malformedJson,
  neverAnswer,
  respond,
  type Script,
} from '../support/upstream';

const EMBED = 'acme-embed';
const PATH = '/v1/embeddings';
/** The prices of a token in units of 1e-8 USD: 0.1 and 0.3 USD per million tokens. */
const CHEAP_E8 = 10;
const CONTEXT = 8_192;

const embeds = (input: number, more: object = {}) => ({
  context: CONTEXT,
  maxOutput: 0,
  estimatedMaxTokens: 0,
  tokenizerFactor: 1,
  price: { input, output: 0 },
  ...more,
});

const usd = (e8: number) => (e8 / 1e8).toFixed(8);
const LINES = textOf('docs/routing.md')
  .split('\n')
  .filter((line) => line !== '');
const TOKENS = encode(LINES.join('\n'));

describe('Embeddings', function () {
  this.timeout(120_000);
  const cheap = useUpstream();
  const dear = useUpstream();
  let key: string;

  const gateway = useGateway(() => {
    const timeouts = { connect: '2s', headers: '15s', idle: '15s' };
    return {
      upstreams: {
        cheap: {
          url: cheap.url,
          adapter: ['chat', 'embeddings'],
          timeouts,
          models: { [EMBED]: embeds(0.1, { aliases: ['embed-alias'] }), [MODEL]: {} },
        },
        dear: {
          url: dear.url,
          adapter: 'embeddings',
          tier: 'official',
          timeouts: { ...timeouts, headers: '1s' },
          models: { 'dear-embed': embeds(0.3, { aliases: [EMBED] }) },
        },
      },
      configure: (config) => {
        config['customerPrices'] = { resale: { factor: 2, models: { [EMBED]: { price: { input: 1, output: 0 } } } } };
      },
      system: { answerStore: {} },
    };
  });

  before(async () => {
    ({ key } = await gateway.newCustomer('100'));
  });
  beforeEach(() => {
    for (const upstream of [cheap, dear]) {
      upstream.reset();
      upstream.always(embeddingsAnswer());
    }
  });

  const embed = (input: unknown, more: Record<string, unknown> = {}) => ({ model: EMBED, input, ...more });
  const call = (body: unknown, path: string = PATH, of = key) => gateway.call(path, { key: of, body });
  const recordOf = ({ headers }: Answered, of = key) => gateway.record(of, headers['x-svc-request-id'] ?? '');

  describe('are charged', () => {
    const INPUTS: readonly [string, unknown][] = [
      ['a text', 'Good morning'],
      ['a batch of texts', LINES],
      ['the tokens of one text', TOKENS],
      ['a batch of lists of tokens', [TOKENS.slice(0, 500), TOKENS.slice(500), [TOKENS[0]]]],
      ['a batch of more tokens than the context window', Array.from({ length: 20 }, () => TOKENS)],
    ];
    for (const [name, input] of INPUTS) {
      it(`for the tokens that the vendor counts in ${name}, and headers, record and balance show the same charge`, async () => {
        const customer = await gateway.newCustomer('1');
        const answer = await call(embed(input), '/cost/v1/embeddings', customer.key);
        expect(answer.status, answer.text).to.equal(200);
        const tokens = embeddedTokens(input);
        const cost = usd(tokens * CHEAP_E8);
        expect(answer.headers).to.include({
          'x-ai-cost': cost,
          'x-ai-tokens-input': String(tokens),
          'x-ai-tokens-output': '0',
          'x-ai-tokens-total': String(tokens),
          'x-routing-provider': 'cheap',
          'x-svc-source': 'provider',
        });
        const record = await recordOf(answer, customer.key);
        expect(record).to.include({
          protocol: 'embeddings',
          path: '/cost/v1/embeddings',
          strategy: 'cost',
          model: 'dear-embed',
        });
        expect(record).to.include({ billing: 'actual', stream: false, inputTokens: tokens, outputTokens: 0, cost });
        expect(record['flags'] ?? []).to.deep.equal([]);
        const { balanceUsd, heldUsd } = await gateway.balance(customer.key);
        expect([balanceUsd, heldUsd]).to.deep.equal([usd(1e8 - tokens * CHEAP_E8), '0.00000000']);
      });
    }

    it('for an estimate if the vendor reports no usage or an impossible one', async () => {
      for (const rawUsage of [null, { prompt_tokens: -5 }, { prompt_tokens: 'many' }, { total_tokens: 7 }]) {
        cheap.next(embeddingsAnswer({ rawUsage }));
        const answer = await call(embed(TOKENS), '/cost/v1/embeddings');
        expect(answer.status, answer.text).to.equal(200);
        const record = await recordOf(answer);
        expect(record).to.include({ billing: 'estimated', outputTokens: 0 });
        const least = TOKENS.length;
        expect(record['inputTokens']).to.be.within(least, least + 30);
        expect(answer.headers['x-ai-cost']).to.equal(usd(Number(record['inputTokens']) * CHEAP_E8));
      }
    });

    it('at most the hold, and the usage record flags a usage that the body cannot have caused', async () => {
      cheap.next(embeddingsAnswer({ rawUsage: { prompt_tokens: 1_000_000, total_tokens: 1_000_000 } }));
      const answer = await call(embed(['Hello', 'you']), '/cost/v1/embeddings');
      expect(Number(answer.headers['x-ai-cost'])).to.be.below(0.00002);
      expect((await recordOf(answer))['flags']).to.deep.equal(['suspect']);
    });
  });

  describe('are forwarded and relayed', () => {
    it('with every byte of the answer unchanged, as floats and as base64', async () => {
      const answers = [
        '{ "object":"list", "data":[{"embedding":[-4.547132266452536e-05 ,1E-7]}],"usage":{"prompt_tokens":3,"total_tokens":3}}\n',
        '{"usage":{"total_tokens":3,"prompt_tokens":3},"data":[{"embedding":"AACAPwAA\\/+8="}],"x":12345678901234567890}',
      ];
      for (const text of answers) {
        cheap.next(respond({ body: text, headers: { 'content-type': 'application/json' } }));
        const answer = await call(embed('Hello', { encoding_format: 'base64' }), '/cost/v1/embeddings');
        expect(answer.text).to.equal(text);
        expect(answer.headers).to.include({ 'x-ai-cost': usd(30), 'content-type': 'application/json' });
      }
    });

    it("with the upstream's own model name in the body, and all other members unchanged", async () => {
      const text = `{"input": [ "caf\\u00e9" ], "model":"embed-alias","dimensions":256,"input_type":"search_query","priority":1}`;
      const answer = await gateway.call(`/quality/v1/embeddings?beta=true`, {
        key,
        body: text,
        headers: { 'content-type': 'application/json' },
      });
      expect(answer.status, answer.text).to.equal(200);
      expect(dear.calls[0]?.path).to.equal('/v1/embeddings?beta=true');
      expect(dear.calls[0]?.headers).to.include({ authorization: 'Bearer the-platforms-own-credential' });
      expect(dear.calls[0]?.body.toString()).to.equal(
        `{"input": [ "caf\\u00e9" ], "model":"dear-embed","dimensions":256,"input_type":"search_query"}`,
      );
    });
  });

  describe('are routed', () => {
    it('by the strategy in the path', async () => {
      for (const [path, upstream] of [
        ['/v1/embeddings', 'dear'],
        ['/default/v1/embeddings', 'dear'],
        ['/quality/v1/embeddings', 'dear'],
        ['/cost/v1/embeddings', 'cheap'],
      ] as const)
        expect((await call(embed('Hello'), path)).headers['x-routing-provider'], path).to.equal(upstream);
    });

    it('to the upstream that the host name selects, which accepts only its own name of the model', async () => {
      const at = (host: string, body: unknown) => gateway.call(PATH, { key, headers: { host }, body });
      const answer = await at('cheap.p.localhost', embed('Hello'));
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.headers).to.include({ 'x-routing-provider': 'cheap', 'x-ai-cost': usd(CHEAP_E8) });
      expect(await recordOf(answer)).to.include({ strategy: 'direct', upstream: 'cheap', protocol: 'embeddings' });
      const alias = await at('dear.p.localhost', embed('Hello'));
      expect([alias.status, alias.json.error.code]).to.deep.equal([400, 'MODEL_NOT_SUPPORTED']);
    });

    const FAILURES: readonly [string, () => Script][] = [
      ['429', () => chatFailure(429, { type: 'tokens', code: 'rate_limit_exceeded' })],
      ['500', () => chatFailure(500)],
      ['an error in a 200', () => chatFailure(200)],
      ['a body that is not JSON', malformedJson],
      ['a timeout', neverAnswer],
      ['half an answer', () => embeddingsAnswer({}, { cutBody: 20 })],
    ];
    for (const [name, script] of FAILURES) {
      it(`to the next upstream after ${name}, and only that upstream's answer is charged`, async () => {
        dear.always(script());
        const answer = await call(embed('Hello'));
        // Restored each time, because so many failures in a row would eject it.
        await gateway.admin('POST', '/admin/v1/upstreams/dear/enable');
        expect(answer.status, answer.text).to.equal(200);
        expect(answer.headers).to.include({
          'x-routing-provider': 'cheap',
          'x-routing-fallback': 'true',
          'x-ai-cost': usd(CHEAP_E8),
        });
      });
    }

    it('to no other upstream after a 400, which is relayed and costs nothing', async () => {
      const { key: of } = await gateway.newCustomer('1');
      dear.next(chatFailure(400, { type: 'invalid_request_error', message: 'dimensions: not supported' }));
      const answer = await call(embed('Hello', { dimensions: 7 }), PATH, of);
      expect([answer.status, answer.headers['x-svc-source']]).to.deep.equal([400, 'provider']);
      expect(answer.json.error.message).to.equal('dimensions: not supported');
      expect((await gateway.balance(of)).balanceUsd).to.equal('1.00000000');
      expect(cheap.calls).to.have.length(0);
    });

    it('to no other upstream if the answer is too long to buffer, and no upstream is ejected for it', async () => {
      const { key: of } = await gateway.newCustomer('1');
      dear.always(
        respond({ headers: { 'content-type': 'application/json' }, body: Buffer.alloc(65 * 1024 * 1024, ' ') }),
      );
      for (let each = 0; each < 5; each += 1) {
        const answer = await call(embed('Hello'), PATH, of);
        expect([answer.status, answer.json.error.code, answer.json.error.retryable]).to.deep.equal([
          502,
          'ALL_PROVIDERS_FAILED',
          false,
        ]);
        expect(answer.json.error.message).to.contain('ask for base64');
      }
      expect([dear.calls.length, cheap.calls.length]).to.deep.equal([5, 0]);
      dear.always(embeddingsAnswer());
      expect((await call(embed('Hello'), PATH, of)).headers['x-routing-provider']).to.equal('dear');
    });
  });

  describe('as a protocol', () => {
    const refused = async (path: string, body: unknown, host?: string) => {
      const answer = await gateway.call(path, { key, body, headers: host === undefined ? {} : { host } });
      return [answer.status, answer.json.error.code, answer.json.error.message];
    };

    it('refuse models of other protocols, and the other protocols refuse embeddings models', async () => {
      const chat = `The model "${MODEL}" is served only at /v1/chat/completions.`;
      const own = `The model "dear-embed" is served only at /v1/embeddings.`;
      expect(await refused(PATH, { model: MODEL, input: 'Hello' })).to.deep.equal([400, 'MODEL_NOT_SUPPORTED', chat]);
      for (const path of ['/v1/chat/completions', '/v1/messages'])
        expect(await refused(path, ask({ model: EMBED }))).to.deep.equal([400, 'MODEL_NOT_SUPPORTED', own]);
      const direct = await refused('/v1/chat/completions', ask({ model: EMBED }), 'cheap.p.localhost');
      expect(direct[2]).to.equal('The upstream "cheap" serves this model only at /v1/embeddings.');
      expect([...cheap.calls, ...dear.calls]).to.have.length(0);
    });

    it('refuse an invalid input with a message before any upstream is called', async () => {
      expect(await refused(PATH, embed(['Hello', 7]))).to.deep.equal([
        400,
        'INVALID_FIELD',
        'input[1]: expected a string, as the items before it are',
      ]);
      expect(await refused(PATH, embed('Hello', { stream: true }))).to.include(
        'stream: expected false or nothing: embeddings are not streamed',
      );
      expect([...cheap.calls, ...dear.calls]).to.have.length(0);
    });

    it('are in the list of models, the OpenAPI document and the answer to GET /', async () => {
      const { json } = await gateway.call('/v1/models', { method: 'GET', key });
      const shown = json.data.find(({ id }: { id: string }) => id === 'dear-embed');
      expect(shown).to.deep.include({ max_output: 0, context: CONTEXT, upstreams: 2, aliases: [EMBED, 'embed-alias'] });
      expect(shown.price_per_million).to.include({ input: '0.30000000', output: '0.00000000' });
      const { paths } = (await gateway.call('/openapi.json', { method: 'GET' })).json;
      for (const prefix of ['', '/default', '/quality', '/speed', '/cost']) {
        const billing = paths[`${prefix}/v1/embeddings`].post['x-billing'];
        expect(billing).to.deep.include({
          type: 'PER_TOKEN',
          allowedModels: ['dear-embed'],
          streaming: { supported: false },
        });
        expect(billing.modelPricing['dear-embed']).to.include({ inputPricePerToken: 3e-7, outputPricePerToken: 0 });
        expect(paths[`${prefix}/v1/chat/completions`].post['x-billing'].allowedModels).to.deep.equal([MODEL]);
      }
      expect((await gateway.call('/', { method: 'GET' })).json.protocols).to.include('embeddings');
    });

    it('can be called by an operator to test an upstream', async () => {
      const test = async (body: object) => (await gateway.admin('POST', '/admin/v1/upstreams/cheap/test', body)).json;
      expect(await test({ protocol: 'embeddings' })).to.include({ ok: true, model: EMBED, protocol: 'embeddings' });
      expect(await test({ model: EMBED })).to.include({ ok: true, protocol: 'embeddings' });
      cheap.next(chatAnswer());
      expect(await test({})).to.include({ ok: true, model: MODEL, protocol: 'chat' });
    });
  });

  describe('are priced', () => {
    it("with the markup of a key, given as a factor or as the operator's price list", async () => {
      for (const [markup, eachE8] of [
        ['1.5', 45],
        ['resale', 100],
      ] as const) {
        const { key: of } = await gateway.newCustomer('1', { markup });
        const answer = await call(embed(TOKENS.slice(0, 1_000)), PATH, of);
        expect(answer.headers['x-ai-cost'], answer.text).to.equal(usd(1_000 * eachE8));
      }
    });
  });

  describe('through the official SDK', () => {
    let openai: OpenAI;
    before(() => {
      openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: key, maxRetries: 0 });
    });

    it('arrive as numbers, which the SDK decodes from the base64 that it requested', async () => {
      const { data, usage } = await openai.embeddings.create({ model: EMBED, input: 'Good morning', dimensions: 16 });
      expect(dear.calls[0]?.json).to.include({ encoding_format: 'base64', dimensions: 16 });
      expect(data[0]?.embedding).to.have.length(16);
      expect(Math.hypot(...(data[0]?.embedding ?? []))).to.be.closeTo(1, 1e-6);
      expect(usage.prompt_tokens).to.equal(2);
    });
  });
});
