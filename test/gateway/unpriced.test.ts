import { expect } from 'chai';
import { ask, askIn, PATH } from '../support/calls';
import { MODEL } from '../support/gateway';
import { setPolicy } from '../support/policy-settings';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import {
  chatAnswer,
  messagesAnswer,
  type RecordedCall,
  respond,
  responsesAnswer,
  type Script,
} from '../support/upstream';

/** The model's context window costs 0.04 USD. */
const CONTEXT = 10_000;
const PLAIN = {
  context: CONTEXT,
  maxOutput: 1_000,
  estimatedMaxTokens: 100,
  tokenizerFactor: 1,
  toolOverheadTokens: 100,
  price: { input: 4, output: 10 },
};
const SPEAKING = { ...PLAIN, price: { ...PLAIN.price, audioInput: 40, audioOutput: 80 } };
const DEARER = { ...PLAIN, price: { input: 40, output: 100 } };
const OFFER = { type: 'web_search' };
const SPEECH = {
  messages: [
    { role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'UklGRiQAAABXQVZF', format: 'wav' } }] },
  ],
};

/** Searches as often as the body allows, and reads the context window after each search. */
function vendorThatSearches(wanted: number): Script {
  return {
    answer: (exchange) => {
      const { max_tool_calls } = exchange.call.json as { max_tool_calls?: number };
      const searches = Math.min(wanted, max_tool_calls ?? 50);
      const input = 100 + searches * CONTEXT;
      const rawUsage = { input_tokens: input, output_tokens: 100, total_tokens: input + 100 };
      return responsesAnswer({ searches, rawUsage }).answer(exchange);
    },
  };
}

describe('A feature for which an upstream has no price', function () {
  this.timeout(120_000);
  const upstream = useUpstream();

  const gateway = useGateway(() => {
    const { url } = upstream;
    return {
      upstreams: {
        acme: { url, models: { [MODEL]: PLAIN, speaking: SPEAKING, dearer: DEARER }, ignoreUsage: ['billing_policy'] },
        other: { url, models: { 'other-model': PLAIN } },
        strict: {
          url,
          unpricedTools: 'refuse',
          models: { strict: PLAIN, 'strict-speaking': SPEAKING, dearer: DEARER },
        },
      },
      system: { excess: { stopKeyAboveUsd: 0.1 } },
      configure: (config) => setPolicy(config, 'model-request', { unpricedTools: 'refuse' }, 'cost'),
    };
  });
  beforeEach(() => upstream.reset());

  const call = async (path: string, body: object, usd = '1') => {
    const { key, accountId } = await gateway.newCustomer(usd);
    return { key, accountId, ...(await gateway.call(path, { key, body })) };
  };
  const searching = (usd?: string, more: object = {}) =>
    call(PATH.responses, askIn('responses', { tools: [OFFER], ...more }), usd);
  const recordOf = ({ key, headers }: Awaited<ReturnType<typeof call>>) =>
    gateway.record(key, headers['x-svc-request-id'] ?? '');
  const sent = async () => ((await upstream.call(1)) as RecordedCall).json as Record<string, unknown>;
  const metrics = async () => (await gateway.admin('GET', '/metrics')).text;
  const lines = (part: string) =>
    gateway
      .output()
      .split('\n')
      .filter((line) => line.includes(part)).length;

  it('is forwarded if it is a search that the model may use, and the hold covers the results that the vendor may read', async () => {
    upstream.always(vendorThatSearches(0));
    const answered = await searching('0.06');
    expect(answered.status, answered.text).to.equal(200);
    expect((await sent())['tools']).to.deep.equal([OFFER]);
    expect(await recordOf(answered)).to.include({ billing: 'actual', flags: null });
    const added = { type: 'additional_tools', role: 'developer', tools: [OFFER] };
    const later = await searching('0.06', { tools: undefined, input: [{ role: 'user', content: 'Hello' }, added] });
    expect(later.status, later.text).to.equal(200);
    const { status, json } = await searching('0.04');
    expect([status, Number(json.error.details.requiredUsd) > 0.04]).to.deep.equal([402, true]);
  });

  it('is flagged in the record and counted if the model uses it, and its tokens are charged', async () => {
    upstream.always(vendorThatSearches(50));
    const answered = await searching();
    expect(answered.status, answered.text).to.equal(200);
    // 10,100 × 4 and 100 × 10 per million.
    expect(answered.headers['x-ai-cost']).to.equal('0.04140000');
    expect(await recordOf(answered)).to.deep.include({ flags: ['unpriced'] });
    expect(await metrics()).to.match(/^tollgate_usage_doubts_total\{upstream="acme",kind="unpriced"\} [1-9]/m);
  });

  it('is used at most as often as a search with a price, whatever limit the client names', async () => {
    for (const max_tool_calls of [undefined, 40, 2]) {
      upstream.reset();
      upstream.always(vendorThatSearches(50));
      const answered = await searching('0.06', { max_tool_calls });
      expect(answered.status, answered.text).to.equal(200);
      expect((await sent())['max_tool_calls']).to.equal(1);
    }
    upstream.reset();
    upstream.always(messagesAnswer());
    const tools = [{ type: 'web_search_20250305', name: 'web_search', max_uses: 40 }];
    expect((await call(PATH.messages, ask({ tools }))).status).to.equal(200);
    expect((await sent())['tools']).to.deep.equal([{ ...tools[0], max_uses: 1 }]);
  });

  it('is flagged in each call that requests it if answers do not report its use', async () => {
    upstream.always(responsesAnswer());
    const drawn = await call(PATH.responses, askIn('responses', { tools: [{ type: 'image_generation' }] }));
    expect(drawn.status, drawn.text).to.equal(200);
    expect(await recordOf(drawn)).to.deep.include({ flags: ['unpriced'] });
    upstream.always(chatAnswer());
    const found = await call(PATH.chat, ask({ web_search_options: {} }));
    expect(found.status, found.text).to.equal(200);
    expect(await recordOf(found)).to.deep.include({ flags: ['unpriced'] });
    upstream.always(messagesAnswer());
    const ignored = await call(PATH.messages, ask({ billing_policy: { type: 'x' } }));
    expect(ignored.status, ignored.text).to.equal(200);
    expect(await recordOf(ignored), 'in ignoreUsage').to.include({ flags: null });
  });

  it('is flagged if it is an unknown tool, which may name no object that the vendor keeps', async () => {
    upstream.always(responsesAnswer());
    const offer = (tool: object) => call(PATH.responses, askIn('responses', { tools: [tool] }));
    const made = await offer({ type: 'dream', depth: 3, parameters: { properties: { user_id: { type: 'string' } } } });
    expect(made.status, made.text).to.equal(200);
    expect(await recordOf(made)).to.deep.include({ flags: ['unknown', 'unpriced'] });
    for (const tool of [
      { type: 'dream', options: { file_ids: ['file-1'] } },
      { type: 'dream', container: 'cntr_1' },
      { type: 'image_generation', input_image_mask: { file_id: 'file-1' } },
      { type: 'shell', environment: { type: 'container_reference', container_id: 'cntr_1' } },
      { type: 'code_interpreter', container: { type: 'auto', memory_limit: '64g', file_ids: ['file-1'] } },
    ]) {
      const { status, json } = await offer(tool);
      expect([status, json.error?.code, json.error?.param], JSON.stringify(tool)).to.deep.equal([
        400,
        'NOT_SUPPORTED',
        'tools[0]',
      ]);
    }
  });

  it('is refused with `unpricedTools: refuse`, set at an upstream or for a pipeline', async () => {
    const tried: readonly [string, object, string][] = [
      [PATH.responses, askIn('responses', { model: 'strict', tools: [OFFER] }), 'tools[0].type'],
      ['/cost/v1/responses', askIn('responses', { tools: [OFFER] }), 'tools[0].type'],
      ['/cost/v1/responses', askIn('responses', { tools: [{ type: 'image_generation' }] }), 'tools[0].type'],
      ['/cost/v1/responses', askIn('responses', { tools: [{ type: 'dream' }] }), 'tools[0].type'],
      ['/cost/v1/chat/completions', ask(SPEECH), 'messages[0].content'],
      ['/cost/v1/chat/completions', ask({ modalities: ['text', 'audio'] }), 'modalities'],
      ['/cost/v1/messages', ask({ fallbacks: 'default' }), 'fallbacks'],
      ['/cost/v1/messages', ask({ fallbacks: [{ model: 'unheard-of' }] }), 'fallbacks'],
      ['/cost/v1/messages', ask({ fallbacks: [{ model: 'dearer', speed: 'fast' }] }), 'fallbacks'],
      ['/cost/v1/messages', ask({ billing_policy: {} }), 'billing_policy'],
    ];
    for (const [path, body, param] of tried) {
      const { status, json } = await call(path, body);
      expect([status, json.error?.code, json.error?.param]).to.deep.equal([400, 'MODEL_NOT_PRICED', param]);
    }
    expect(upstream.calls).to.have.length(0);
  });

  it('does not include speech at a model with a price for speech: the gateway holds and charges that price', async () => {
    const usage = {
      prompt_tokens: 1_000,
      completion_tokens: 100,
      total_tokens: 1_100,
      prompt_tokens_details: { audio_tokens: 400 },
    };
    const choice = { index: 0, message: { role: 'assistant', content: 'heard' }, finish_reason: 'stop' };
    upstream.always(
      respond({
        body: { id: 'c1', object: 'chat.completion', created: 1, model: 'speaking', choices: [choice], usage },
      }),
    );
    for (const model of ['speaking', 'strict-speaking']) {
      const answered = await call(PATH.chat, ask({ model, ...SPEECH }));
      expect(answered.status, answered.text).to.equal(200);
      // 600 × 4, 400 × 40 and 100 × 10 per million.
      expect(answered.headers['x-ai-cost']).to.equal('0.01940000');
      expect(await recordOf(answered)).to.include({ flags: null });
    }
    const poor = await call(PATH.chat, ask({ model: 'speaking', ...SPEECH }), '0.1');
    // A context window at the price of speech.
    expect([poor.status, Number(poor.json.error.details.requiredUsd)]).to.deep.equal([402, 0.402]);
    const spoken = await call(PATH.chat, ask({ model: 'speaking', modalities: ['text', 'audio'] }), '0.01');
    // 200 tokens of output at the price of speech.
    expect(spoken.status).to.equal(402);
    expect(Number(spoken.json.error.details.requiredUsd)).to.be.within(0.016, 0.017);
  });

  it('does not include a fallback to a model of the same upstream: the gateway holds and charges the fallback', async () => {
    const iterations = [
      { type: 'message', model: MODEL, input_tokens: 1_000, output_tokens: 0 },
      { type: 'fallback_message', model: 'dearer', input_tokens: 1_000, output_tokens: 100 },
    ];
    const rawUsage = { input_tokens: 1_000, output_tokens: 100, iterations };
    upstream.always(messagesAnswer({ rawUsage }));
    const body = ask({
      fallbacks: [{ model: 'dearer' }],
      messages: [{ role: 'user', content: 'word '.repeat(1_000) }],
    });
    for (const model of [MODEL, 'strict']) {
      const answered = await call(PATH.messages, { ...body, model });
      expect(answered.status, answered.text).to.equal(200);
      // 1,000 × 4, and 1,000 × 40 and 100 × 100 per million.
      expect(answered.headers['x-ai-cost']).to.equal('0.05400000');
      expect(await recordOf(answered)).to.include({ flags: null });
    }
    const unheard = await call(PATH.messages, { ...body, fallbacks: [{ model: 'unheard-of' }] });
    expect(unheard.status, unheard.text).to.equal(200);
    // The vendor reports the input of two models, and the call holds one.
    expect(await recordOf(unheard)).to.deep.include({ flags: ['unpriced', 'suspect'] });
  });

  it('may be an unknown member: the record of its call is flagged, and the log names the member once per upstream', async () => {
    upstream.always(messagesAnswer());
    const asks = (model: string, more: object) => call(PATH.messages, ask({ model, ...more }));
    for (const model of [MODEL, MODEL, 'other-model', 'other-model']) {
      const answered = await asks(model, { brand_new: true });
      expect(answered.status, answered.text).to.equal(200);
      expect(await recordOf(answered)).to.deep.include({ flags: ['unknown'] });
    }
    await until('both upstreams are named', () => lines('"brand_new"') >= 2 || undefined);
    await asks(MODEL, { another_new: true });
    await until('the next member is named', () => lines('"another_new"') === 1 || undefined);
    expect(lines('"brand_new"')).to.equal(2);
  });
});
