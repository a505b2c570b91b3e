import { expect } from 'chai';
import { ask, PATH } from '../support/calls';
import { MODEL } from '../support/gateway';
import { useGateway, useUpstream } from '../support/story';
import { chatAnswer, respond, type Script, when } from '../support/upstream';

/** Prices in USD per million tokens, and per piece. A context window of 10,000 tokens costs 0.04 at the highest price of input. */
const PRICE = { input: 2, output: 10, cacheWrite1h: 4, pieces: { webSearch: 0.01, webFetch: 0, codeExecution: 0.005 } };
const WINDOW = 0.04;
/** The bounds of what else is held: 200 tokens of output, the body, and what a vendor adds for tools. */
const REST = { atLeast: 0.002 + 0.002, atMost: 0.001 + 0.016 };

const SEARCH = { type: 'web_search_20250305', name: 'web_search' };
const FETCH = { type: 'web_fetch_20250910', name: 'web_fetch' };
const CODE = { type: 'code_execution_20260521', name: 'code_execution' };

function answer(usage: object, more: object = {}): Script {
  return respond({
    body: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: MODEL,
      content: [{ type: 'text', text: 'found' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 1_000, output_tokens: 100, ...usage },
      ...more,
    },
  });
}

describe('Tools that run at the vendor', () => {
  const upstream = useUpstream();
  const plain = useUpstream();

  const gateway = useGateway(() => {
    const model = { context: 10_000, maxOutput: 1_000, estimatedMaxTokens: 100, tokenizerFactor: 1 };
    return {
      upstreams: {
        acme: {
          url: upstream.url,
          models: {
            [MODEL]: { ...model, price: PRICE },
            eager: { ...model, price: PRICE, toolUses: { webSearch: 2 } },
          },
        },
        plain: {
          url: plain.url,
          unpricedTools: 'refuse',
          models: { [MODEL]: { ...model, price: { input: 1, output: 5 } }, 'plain-only': model },
        },
      },
    };
  });
  beforeEach(() => {
    upstream.reset();
    plain.reset();
    upstream.always(answer({}));
  });

  const call = async (usd: string, body: object, path: string = PATH.messages) => {
    const { key } = await gateway.newCustomer(usd);
    return { key, ...(await gateway.call(path, { key, body: ask(body as Record<string, unknown>) })) };
  };
  /** Returns the hold of a call whose upstream has not answered yet. */
  const held = async (body: object, path: string = PATH.messages) => {
    const { key } = await gateway.newCustomer('1');
    let release: () => void = () => undefined;
    upstream.next(when(new Promise<void>((resolve) => (release = resolve)), answer({})));
    const answered = gateway.call(path, { key, body: ask(body as Record<string, unknown>) });
    await upstream.call(1);
    const { heldUsd } = await gateway.balance(key);
    release();
    await answered;
    return Number(heldUsd);
  };
  const sentTools = () => (upstream.calls.at(-1)?.json as { tools: object[] } | undefined)?.tools;

  for (const [tools, windows, pieces] of [
    [[{ ...SEARCH, max_uses: 3 }], 3, 0.03],
    [[{ ...SEARCH, max_uses: 1 }], 1, 0.01],
    [[{ ...SEARCH, max_uses: 0 }], 0, 0],
    [[SEARCH], 1, 0.01],
    [[{ ...SEARCH, max_uses: null }], 1, 0.01],
    [
      [
        { ...SEARCH, max_uses: 3 },
        { ...FETCH, max_uses: 2 },
      ],
      5,
      0.03,
    ],
    [[{ ...SEARCH, max_uses: 40 }], 9, 0.4],
    [[{ type: 'web_search_20260318', name: 'web_search', max_uses: 2 }], 9, 0.02],
    [[CODE], 9, 0.005],
    [[{ name: 'own', input_schema: { type: 'object' } }], 0, 0],
  ] as const) {
    it(`make the hold of a call cover ${windows} further context windows and ${pieces} USD for ${JSON.stringify(tools)}`, async () => {
      const required = await held({ tools });
      expect(required).to.be.within(windows * WINDOW + pieces + REST.atLeast, windows * WINDOW + pieces + REST.atMost);
    });
  }

  it('get a limit on their uses, as many as the hold covers, if the call names no limit', async () => {
    const own = { name: 'own', input_schema: { type: 'object' } };
    await call('1', { tools: [own, SEARCH, { ...FETCH, max_uses: null }, { ...SEARCH, max_uses: 1 }, CODE] });
    expect(sentTools()).to.deep.equal([
      own,
      { ...SEARCH, max_uses: 1 },
      { ...FETCH, max_uses: 1 },
      { ...SEARCH, max_uses: 1 },
      CODE,
    ]);
  });

  it("get the model's limit on their uses if the model has one", async () => {
    const body = { model: 'eager', tools: [SEARCH] };
    const required = await held(body);
    expect(required).to.be.within(2 * WINDOW + 0.02 + REST.atLeast, 2 * WINDOW + 0.02 + REST.atMost);
    await call('1', body);
    expect(sentTools()).to.deep.equal([{ ...SEARCH, max_uses: 2 }]);
  });

  it('leave every other byte of the body unchanged when they get a limit', async () => {
    const { key } = await gateway.newCustomer('1');
    const text = `{"model":"${MODEL}", "max_tokens": 5,"tools":[ { "max_uses" : null , "type":"web_search_20250305"}, {\n"type":"web_fetch_20260318" } ],"messages":[{"role":"user","content":"x"}]}`;
    const { status } = await gateway.call(PATH.messages, { key, body: text });
    expect(status).to.equal(200);
    expect(upstream.calls[0]?.body.toString()).to.equal(
      text.replace(' null ', ' 1 ').replace('{\n"type"', '{"max_uses":1,\n"type"'),
    );
  });

  it('are routed to upstreams with a price for them, and get 400 if all upstreams of the model refuse unpriced tools', async () => {
    plain.always(answer({}));
    expect((await call('1', { tools: [SEARCH] })).headers['x-routing-provider']).to.equal('acme');
    plain.reset();
    const { status, json } = await call('1', { model: 'plain-only', tools: [{ name: 'own' }, SEARCH] });
    expect([status, json.error.code, json.error.param]).to.deep.equal([400, 'MODEL_NOT_PRICED', 'tools[1].type']);
    expect(plain.calls).to.have.length(0);
  });

  it('get 400 if their limit has a form that different upstreams could read differently', async () => {
    const refusal = async (tools: string) => {
      const { key } = await gateway.newCustomer('1');
      const body = JSON.stringify(ask()).replace(/}$/, `,"tools":[${tools}]}`);
      const { status, json } = await gateway.call(PATH.messages, { key, body });
      return `${status} ${json.error?.code} ${json.error?.param}`;
    };
    const type = '"type":"web_search_20250305"';
    for (const limit of ['-1', '1.5', '"3"', '{}', '[1]', 'true', '1001', '1e9'])
      expect(await refusal(`{${type},"max_uses":${limit}}`), limit).to.equal('400 INVALID_FIELD tools[0].max_uses');
    expect(await refusal(`{"max_uses":1,${type},"max_uses":9}`)).to.equal('400 INVALID_FIELD tools[0].max_uses');
    expect(await refusal(`{${type},"Max_Uses":9}`)).to.equal('400 INVALID_FIELD tools[0]');
    expect(await refusal(`{${type},"M\\u0061x_Uses":9}`)).to.equal('400 INVALID_FIELD tools[0]');
    expect(await refusal(`{${type},"type":"custom"}`)).to.equal('400 INVALID_FIELD tools[0].type');
    expect(upstream.calls).to.have.length(0);
  });

  it('cost the price of one container for each call that runs code in a container', async () => {
    const container = { id: 'container_priced', expires_at: '2027-01-01T00:00:00Z', skills: null };
    upstream.next(
      answer({}, { container }),
      answer({}),
      answer({ server_tool_use: { web_fetch_requests: 1 } }, { container }),
    );
    const ran = await call('1', { tools: [CODE] });
    expect(ran.headers['x-ai-cost']).to.equal('0.00800000');
    expect((await call('1', { tools: [CODE] })).headers['x-ai-cost'], 'no code ran').to.equal('0.00300000');
    expect((await call('1', { tools: [CODE, FETCH] })).headers['x-ai-cost'], 'beside a web tool').to.equal(
      '0.00300000',
    );
    const body = ask({ container: container.id, tools: [CODE] });
    expect((await gateway.call(PATH.messages, { key: ran.key, body })).status, 'its account has it').to.equal(200);
    const { status, json } = await call('1', { container: container.id, tools: [CODE] });
    expect([status, json.error.code], 'another account has not').to.deep.equal([404, 'KEPT_OBJECT_NOT_FOUND']);
  });

  const USED = { input: 1_000, output: 100 };
  const SEARCHING: readonly (readonly [path: string, body: Readonly<Record<string, unknown>>])[] = [
    [PATH.chat, { web_search_options: { search_context_size: 'low' } }],
    [PATH.chat, { enable_search: true }],
    [PATH.messages, { enable_search: true }],
  ];
  for (const [path, body] of SEARCHING) {
    it(`cost one search, which the answer does not report, for ${JSON.stringify(body)} at ${path}`, async () => {
      upstream.always(path === PATH.chat ? chatAnswer({ usage: USED }) : answer({ cache_read_input_tokens: 0 }));
      const required = await held(body, path);
      expect(required).to.be.within(WINDOW + 0.01 + 0.001, WINDOW + 0.01 + REST.atMost);
      const { key, headers } = await call('1', body, path);
      expect(headers['x-ai-cost']).to.equal('0.01300000');
      const record = await gateway.record(key, headers['x-svc-request-id'] ?? '');
      expect(record['passes']).to.deep.equal([{ input: 1_000, output: 100, cacheRead: 0, webSearch: 1 }]);
      const { status, json } = await call('1', { ...body, model: 'plain-only' }, path);
      expect([status, json.error.code, json.error.param]).to.deep.equal([
        400,
        'MODEL_NOT_PRICED',
        Object.keys(body)[0],
      ]);
    });
  }

  it('cost nothing if the member that requests a search is switched off', async () => {
    upstream.always(chatAnswer({ usage: { input: 10, output: 100 } }));
    for (const off of [{ enable_search: false }, { web_search: { enable: false } }, { web_search_options: null }]) {
      const { headers } = await call('1', { ...off, model: 'eager' }, PATH.chat);
      expect(headers['x-ai-cost'], JSON.stringify(off)).to.equal('0.00102000');
    }
  });
});
