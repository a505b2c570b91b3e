import { expect } from 'chai';
import { ask, PATH } from '../support/calls';
import { showFigures } from '../support/show-figures';
import { useGateway, useUpstream } from '../support/story';
import { chatStream, messagesStream, respond, type Script } from '../support/upstream';

/** USD per million tokens. */
const PRICE = {
  input: 2,
  output: 10,
  cacheRead: 0.2,
  cacheWrite: 2.5,
  cacheWrite1h: 4,
  audioInput: 40,
  audioOutput: 80,
  pieces: { webSearch: 0.01, webFetch: 0 },
  above: { tokens: 150_000, input: 4, output: 15, cacheRead: 0.4 },
  tiers: { priority: { factor: 2 } },
  speeds: { fast: { input: 30, output: 150 } },
  geos: { us: { factor: '1.1' } },
};
const DEARER = { input: 5, output: 25 };

interface Row {
  readonly is: string;
  /** Members of the vendor's answer instead of the usual ones. */
  readonly answer: Readonly<Record<string, unknown>>;
  /** What the vendor charges, computed by hand. */
  readonly cost: string;
  readonly record?: Readonly<Record<string, unknown>>;
}

const counts = (input: number, output: number, more: object = {}) => ({
  input_tokens: input,
  output_tokens: output,
  ...more,
});

const MESSAGES: readonly Row[] = [
  {
    is: 'compaction, which only the passes report',
    answer: {
      usage: counts(20_000, 1_600, {
        iterations: [
          { type: 'compaction', ...counts(180_000, 3_500) },
          { type: 'message', ...counts(20_000, 1_600) },
        ],
      }),
    },
    // The threshold holds per pass: 180,000 × 4 + 3,500 × 15 above it, and 20,000 × 2 + 1,600 × 10 below it.
    cost: '0.82850000',
    record: { inputTokens: 200_000, outputTokens: 5_100, totalTokens: 205_100 },
  },
  {
    is: 'compaction without an answer',
    answer: {
      stop_reason: 'compaction',
      usage: counts(0, 0, { iterations: [{ type: 'compaction', ...counts(100_000, 19_500) }] }),
    },
    cost: '0.39500000',
  },
  {
    is: 'an answer by a more expensive model after a fallback',
    answer: {
      model: 'dearer',
      usage: counts(1_000, 100, {
        iterations: [
          { type: 'message', model: 'large', ...counts(1_000, 0) },
          { type: 'fallback_message', model: 'dearer', ...counts(1_000, 100) },
        ],
      }),
    },
    cost: '0.00950000',
    record: {
      passes: [
        { input: 1_000, output: 0 },
        { model: 'dearer', input: 1_000, output: 100 },
      ],
    },
  },
  {
    is: 'a model that answers with a different name',
    answer: { model: 'large-20261101', usage: counts(1_000, 100) },
    cost: '0.00300000',
  },
  { is: 'the tier priority', answer: { usage: counts(1_000, 100, { service_tier: 'priority' }) }, cost: '0.00600000' },
  { is: 'the speed fast', answer: { usage: counts(1_000, 100, { speed: 'fast' }) }, cost: '0.04500000' },
  { is: 'a region', answer: { usage: counts(1_000, 100, { inference_geo: 'us' }) }, cost: '0.00330000' },
  {
    is: 'tier, speed and region at once',
    answer: { usage: counts(1_000, 100, { service_tier: 'priority', speed: 'fast', inference_geo: 'us' }) },
    cost: '0.09900000',
    record: {
      passes: [{ tier: 'priority', speed: 'fast', geo: 'us', input: 1_000, output: 100 }],
      flags: null,
    },
  },
  {
    is: 'a redeemed cache credit, for which written tokens count as read',
    answer: {
      usage: counts(0, 0, {
        cache_creation_input_tokens: 50_000,
        fallback_credit: { status: { type: 'redeemed' } },
      }),
    },
    cost: '0.01000000',
  },
  {
    is: 'a cache credit that was not redeemed',
    answer: {
      usage: counts(0, 0, {
        cache_creation_input_tokens: 50_000,
        fallback_credit: { status: { type: 'not_applied', reason: 'expired' } },
      }),
    },
    cost: '0.12500000',
  },
  {
    is: 'web searches, each at its price',
    answer: { usage: counts(1_000, 100, { server_tool_use: { web_search_requests: 3, web_fetch_requests: 2 } }) },
    cost: '0.03300000',
    record: { flags: null },
  },
  {
    is: 'a tier without a price, with the highest possible price and a flag',
    answer: { usage: counts(1_000, 100, { service_tier: 'flex' }) },
    cost: '0.09900000',
    record: { flags: ['unpriced'] },
  },
  {
    is: 'an unknown count, with no charge and a flag',
    answer: { usage: counts(1_000, 100, { code_seconds: 7, queue_time: 0.01 }) },
    cost: '0.00300000',
    record: { flags: ['unknown'] },
  },
  {
    is: 'a count in `ignoreUsage`, with no charge and no flag',
    answer: { usage: counts(1_000, 100, { queue_time: 0.01 }) },
    cost: '0.00300000',
    record: { flags: null, passes: null },
  },
];

const tokens = (prompt: number, completion: number, more: object = {}) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
  ...more,
});

const CHAT: readonly Row[] = [
  {
    is: 'tokens written to the cache',
    answer: { usage: tokens(100_000, 0, { prompt_tokens_details: { cache_write_tokens: 100_000 } }) },
    cost: '0.25000000',
    record: { inputTokens: 0, cacheCreationTokens: 100_000, totalTokens: 100_000 },
  },
  {
    is: 'audio input and output',
    answer: {
      usage: tokens(1_000, 500, {
        prompt_tokens_details: { audio_tokens: 400, cached_tokens: 100 },
        completion_tokens_details: { audio_tokens: 300 },
      }),
    },
    // 500 × 2 + 100 × 0.2 + 400 × 40 + 200 × 10 + 300 × 80
    cost: '0.04302000',
    record: { inputTokens: 900, outputTokens: 500, cacheReadTokens: 100, totalTokens: 1_500 },
  },
  { is: 'the tier priority', answer: { service_tier: 'priority', usage: tokens(1_000, 100) }, cost: '0.00600000' },
  { is: 'the default tier', answer: { service_tier: 'default', usage: tokens(1_000, 100) }, cost: '0.00300000' },
];

/** A call that holds a context window of input and 8,000 tokens of output, more than any of these answers costs. */
const LARGE = { model: 'large', max_tokens: 8_000, messages: [{ role: 'user', content: 'word '.repeat(3_000) }] };

describe("A call costs what the vendor's price list says", () => {
  const upstream = useUpstream();

  const gateway = useGateway(() => {
    const models = { large: { price: PRICE, context: 400_000 }, dearer: { price: DEARER, context: 400_000 } };
    return { upstreams: { acme: { url: upstream.url, models, ignoreUsage: ['queue_time'] } } };
  });
  beforeEach(() => upstream.reset());

  const expectBilled = async (path: string, stream: boolean, script: Script, { is, cost, record = {} }: Row) => {
    const body = ask({ ...LARGE, stream });
    const broke = await gateway.newCustomer('0');
    const refused = await gateway.call(path, { key: broke.key, body });
    const holdUsd = Number(refused.json.error.details.requiredUsd);
    const { key } = await gateway.newCustomer('10');
    upstream.always(script);
    const answer = await gateway.call(path, { key, body });
    expect(answer.status, answer.text).to.equal(200);
    if (!stream) expect(answer.headers['x-ai-cost']).to.equal(cost);
    const written = await gateway.record(key, answer.headers['x-svc-request-id'] ?? '');
    expect(written['cost']).to.equal(cost);
    for (const [field, value] of Object.entries(record)) expect(written[field], field).to.deep.equal(value);
    const vendorUsd = Number(cost);
    const chargedUsd = 10 - Number((await gateway.balance(key)).balanceUsd);
    showFigures(is, { vendorUsd, holdUsd, chargedUsd, lossUsd: Math.max(0, vendorUsd - chargedUsd) });
    expect(chargedUsd).to.be.closeTo(vendorUsd, 1e-9);
    expect(chargedUsd).to.be.at.most(holdUsd);
  };

  it('for a tier that the call requests, which the hold covers and the upstream receives', async () => {
    upstream.always(respond({ body: { ...MESSAGE, usage: counts(1_000, 100, { service_tier: 'priority' }) } }));
    const body = ask({ model: 'large', max_tokens: 1_000, service_tier: 'priority' });
    const poor = await gateway.newCustomer('0.035');
    const refused = await gateway.call(PATH.messages, { key: poor.key, body });
    expect(refused.status, refused.text).to.equal(402);
    const plain = await gateway.call(PATH.messages, {
      key: poor.key,
      body: ask({ model: 'large', max_tokens: 1_000 }),
    });
    expect(plain.status, plain.text).to.equal(200);
    const { key } = await gateway.newCustomer('1');
    const answer = await gateway.call(PATH.messages, { key, body });
    expect(answer.headers['x-ai-cost']).to.equal('0.00600000');
    expect((await upstream.call(2)).json).to.include({ service_tier: 'priority' });
  });

  it('for tiers and regions, which the list of models and the OpenAPI document show', async () => {
    const { key } = await gateway.newCustomer('1');
    const show = async (path: string) => JSON.parse((await gateway.call(path, { method: 'GET', key })).text);
    const body = await show('/v1/models/large');
    expect(body.price_per_million).to.include({ input: '4.00000000', cache_write_1h: '4.00000000' });
    expect(body.price_per_million).to.include({ audio_input: '40.00000000', audio_output: '80.00000000' });
    expect(body.price_per_piece).to.deep.equal({ web_search: '0.01000000', web_fetch: '0.00000000' });
    expect(body.tool_uses).to.deep.equal({ web_search: 1, web_fetch: 1 });
    expect(body.price_variants['priority fast us']).to.include({ input: '66.00000000', output: '330.00000000' });
    const document = await show('/openapi.json');
    const priced = document.paths['/v1/messages'].post['x-billing'].modelPricing.large;
    expect(priced).to.include({ inputPricePerToken: 0.000004, audioInputPricePerToken: 0.00004 });
    expect(priced.pricePerPiece).to.deep.equal({ webSearch: 0.01, webFetch: 0 });
    expect(priced.variants.us).to.include({ outputPricePerToken: 0.0000165 });
  });

  for (const row of MESSAGES) {
    it(`for ${row.is} (messages)`, () =>
      expectBilled(PATH.messages, false, respond({ body: { ...MESSAGE, ...row.answer } }), row));
    it(`for ${row.is} (messages, streamed)`, () => {
      const { model, stop_reason, usage } = row.answer as Record<string, unknown>;
      const said = messagesStream({ texts: ['one'] });
      const edited = said.events.map((event) =>
        edit(event, (data) => {
          const { message, delta } = data as { message?: object; delta?: object };
          if (data['type'] === 'message_start')
            return { ...data, message: { ...message, ...begun(model, usage as object) } };
          if (data['type'] !== 'message_delta') return data;
          return { ...data, delta: { ...delta, ...(stop_reason !== undefined && { stop_reason }) }, usage };
        }),
      );
      return expectBilled(PATH.messages, true, messagesStream({ texts: ['one'], edit: () => edited }), row);
    });
  }

  for (const row of CHAT) {
    it(`for ${row.is} (chat)`, () =>
      expectBilled(PATH.chat, false, respond({ body: { ...COMPLETION, ...row.answer } }), row));
    it(`for ${row.is} (chat, streamed)`, () => {
      const said = chatStream({ texts: ['one'], withUsage: true });
      const edited = said.events.map((event) =>
        edit(event, (data) =>
          data['usage'] === undefined || data['usage'] === null ? data : { ...data, ...row.answer },
        ),
      );
      return expectBilled(PATH.chat, true, chatStream({ texts: ['one'], withUsage: true, edit: () => edited }), row);
    });
  }
});

const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'large',
  content: [{ type: 'text', text: 'one' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
};

const COMPLETION = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'large',
  choices: [{ index: 0, message: { role: 'assistant', content: 'one' }, finish_reason: 'stop' }],
};

/** Returns the members of the first event: input, variant and a placeholder of output. Passes come only at the end. */
function begun(model: unknown, { iterations: _, ...usage }: { iterations?: unknown }): object {
  return { model: model ?? 'large', usage: { ...usage, output_tokens: 1 } };
}

function edit(event: string, change: (data: Record<string, unknown>) => object): string {
  return event.replace(
    /^data: (\{.*\})$/m,
    (_, data: string) => `data: ${JSON.stringify(change(JSON.parse(data) as Record<string, unknown>))}`,
  );
}
