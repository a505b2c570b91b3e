import { expect } from 'chai';
import { askIn, PATH, PROTOCOLS, type TestProtocol } from '../support/calls';
import { DIALECT } from '../support/dialects';
import { answerIn, DIRECTIONS, streamIn, UPSTREAM_DIALECTS, type UpstreamDialect } from '../support/directions';
import { PRICE, type TestEndpoint } from '../support/gateway';
import { LeavingClient } from '../support/leaving-client';
import { setPolicy } from '../support/policy-settings';
import { useGateway, useUpstream } from '../support/story';
import { thinking } from '../support/thinking';
import { until } from '../support/until';
import type { Said, Script, StreamOptions } from '../support/upstream';

// biome-ignore lint/suspicious/noExplicitAny: bodies of four dialects
type Body = any;

const TEXTS = ['one ', 'two ', 'three ', 'four'];
/** The output limit of every call. A vendor adds TOOL_OVERHEAD tokens to a call with tools. */
const LIMIT = 200;
/** A larger limit, and the output that is held at least where the balance is small. */
const LARGE = 4_000;
const MIN_OUTPUT = 1_024;
const TOOL_OVERHEAD = 700;

const HELD: Readonly<Record<UpstreamDialect, string>> = {
  messages: 'model-1',
  chat: 'model-2',
  responses: 'model-3',
  gemini: 'model-4',
};

/** Reads the output limit from a request in each dialect. */
const LIMIT_IN: Readonly<Record<UpstreamDialect, (body: Body) => unknown>> = {
  messages: ({ max_tokens }) => max_tokens,
  chat: ({ max_tokens }) => max_tokens,
  responses: ({ max_output_tokens }) => max_output_tokens,
  gemini: ({ generationConfig }) => generationConfig.maxOutputTokens,
};

describe('The bill of a translated call', () => {
  const upstream = useUpstream();
  let key: string;

  const gateway = useGateway(() => {
    const only = (dialect: UpstreamDialect): TestEndpoint => ({
      url: upstream.url,
      adapter: dialect,
      models: {
        [`${dialect}-model`]: {},
        // The names have equal lengths, because they count as tokens too.
        [HELD[dialect]]: { toolOverheadTokens: TOOL_OVERHEAD },
      },
    });
    return {
      upstreams: Object.fromEntries(UPSTREAM_DIALECTS.map((dialect) => [`only-${dialect}`, only(dialect)])),
      configure: (config) => {
        setPolicy(config, 'reserve-settle', { onClientAbort: 'drain' }, 'cost');
        setPolicy(config, 'reserve-settle', { onInsufficient: 'clamp' }, 'quality');
      },
    };
  });

  before(async () => {
    ({ key } = await gateway.newCustomer('100'));
  });
  beforeEach(() => upstream.reset());

  /** Returns the charge of a call and the usage behind it. */
  async function bill(id: string): Promise<Record<string, unknown>> {
    const { requestId: _, ...record } = await gateway.record(key, id);
    const told = ['cost', 'billing', 'inputTokens', 'outputTokens', 'cacheReadTokens', 'cacheWriteTokens'];
    return Object.fromEntries(told.map((name) => [name, record[name]]));
  }

  async function charged(from: TestProtocol, model: string, stream: boolean, script: Script) {
    upstream.next(script);
    const answered = await gateway.call(PATH[from], { key, body: askIn(from, { model, stream }) });
    expect(answered.status, answered.text).to.equal(200);
    return { ...answered, bill: await bill(answered.headers['x-svc-request-id'] ?? '') };
  }

  /** The largest set of counts that each dialect can report. */
  const USAGE: Readonly<Record<UpstreamDialect, Said['usage']>> = {
    messages: { input: 1_000, output: 300, cacheRead: 500, cacheWrite: 200 },
    responses: { input: 1_000, output: 300, cacheRead: 500, cacheWrite: 200 },
    chat: { input: 1_000, output: 300, cacheRead: 500 },
    gemini: { input: 1_000, output: 300, cacheRead: 500 },
  };

  function usd(usage: NonNullable<Said['usage']>): string {
    const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0 } = usage;
    const cost = input * PRICE.input + output * PRICE.output + cacheRead * PRICE.cacheRead;
    return ((cost + cacheWrite * PRICE.cacheWrite) / 1e6).toFixed(8);
  }

  for (const { from, to, model, name } of DIRECTIONS) {
    describe(`from ${name}`, () => {
      for (const stream of [false, true])
        it(`equals the bill of the native call for all reported tokens, ${stream ? 'streamed' : 'in one piece'}`, async () => {
          const usage = USAGE[to] ?? {};
          const script = () => (stream ? streamIn(to, { texts: TEXTS, usage }) : answerIn(to, { texts: TEXTS, usage }));
          const translated = await charged(from, model, stream, script());
          expect(translated.headers['x-routing-translated']).to.equal('true');
          expect(translated.bill).to.include({ billing: 'actual', cost: usd(usage) });
          if (to !== 'gemini') expect(translated.bill).to.deep.equal((await charged(to, model, stream, script())).bill);
        });

      it('counts reasoning as output', async () => {
        const said = { thought: 'Hm.', signature: 'sign', text: 'Yes.', reasoningTokens: 25 };
        for (const stream of [false, true]) {
          const { bill: told } = await charged(from, model, stream, thinking(to, said, stream));
          expect(told).to.include({ billing: 'actual', outputTokens: 40, cost: usd({ input: 100, output: 40 }) });
        }
      });

      it('equals the estimate of the native call if a stream reports no usage', async () => {
        const script = () => streamIn(to, { texts: TEXTS, rawUsage: null, edit: withoutCounts });
        const translated = await charged(from, model, true, script());
        expect(DIALECT[from].textOf(translated.text)).to.equal(TEXTS.join(''));
        expect(translated.text).to.match(DIALECT[from].end);
        expect(translated.bill).to.include({ billing: 'estimated' });
        if (to === 'gemini') return;
        const native = await charged(to, model, true, script());
        expect(translated.bill).to.include({ outputTokens: native.bill['outputTokens'] });
      });

      for (const [how, prefix] of [
        ['that disconnects', ''],
        ['that disconnects with `onClientAbort: drain`', '/cost'],
      ] as const)
        it(`equals the bill of the native call for a client ${how}`, async () => {
          const leave = async (protocol: TestProtocol) => {
            const gone = openGate();
            const usage = { input: 100, output: 70 };
            const waitFor: StreamOptions['waitFor'] = { before: at(to, 2), until: gone.passed };
            upstream.next(streamIn(to, { texts: TEXTS, usage, waitFor }));
            const customer = await gateway.newCustomer('10');
            const body = askIn(protocol, { model, stream: true });
            const client = new LeavingClient(gateway, `${prefix}${PATH[protocol]}`, customer.key, body);
            await client.sees('one ');
            client.leave();
            gone.open();
            const { items } = await until('the record is there', async () => {
              const { json } = await gateway.call('/v1/usage', { method: 'GET', key: customer.key });
              return json.items.length > 0 ? json : undefined;
            });
            const { heldUsd } = await gateway.balance(customer.key);
            const { cost, billing, outputTokens } = items[0];
            return { cost, billing, outputTokens, heldUsd };
          };
          const translated = await leave(from);
          expect(translated).to.include({ billing: 'actual', cost: usd({ input: 100, output: 70 }) });
          if (to !== 'gemini') expect(translated).to.deep.equal(await leave(to));
        });

      it('stays within the balance, because the gateway sends a lower limit of tokens in the member that the upstream knows', async () => {
        const body = askIn(from, { model, max_tokens: LARGE });
        const minE8 = await requiredE8(from, body);
        const poor = await gateway.newCustomer(fromE8(minE8));
        upstream.next(answerIn(to, { usage: { input: 100_000, output: MIN_OUTPUT } }));
        const answered = await gateway.call(`/quality${PATH[from]}`, { key: poor.key, body });
        expect(answered.status, answered.text).to.equal(200);
        expect(LIMIT_IN[to](upstream.calls.at(-1)?.json)).to.equal(MIN_OUTPUT);
        await until('it is settled', async () => (await gateway.balance(poor.key)).heldUsd === '0.00000000');
        expect((await gateway.balance(poor.key)).balanceUsd).to.equal('0.00000000');
      });
    });
  }

  describe('is never above the hold', () => {
    const tools = [{ name: 'weather', description: 'Tells it.', input_schema: { type: 'object' } }];

    for (const to of ['chat', 'responses', 'gemini'] as const)
      it(`although the vendor of ${to} writes to its cache without a request and adds tokens for tools`, async () => {
        const answerE8 = LIMIT * PRICE.output * 100;
        for (const more of [{}, { tools }]) {
          // The native call of this client writes no cache, so its hold gives the tokens of the body.
          const native = await requiredE8('messages', askIn('messages', { model: HELD.messages, ...more }));
          const tokens = (native - answerE8) / (PRICE.input * 100);
          const translated = await requiredE8('messages', askIn('messages', { model: HELD[to], ...more }));
          const added = 'tools' in more ? TOOL_OVERHEAD : 0;
          expect(translated).to.be.at.least((tokens + added) * PRICE.cacheWrite * 100 + answerE8);
          const rich = await gateway.newCustomer('10');
          upstream.next(
            answerIn(to, {
              usage:
                to === 'responses' ? { input: 0, cacheWrite: tokens, output: LIMIT } : { input: tokens, output: LIMIT },
            }),
          );
          const body = askIn('messages', { model: HELD[to], ...more });
          const { headers } = await gateway.call(PATH.messages, { key: rich.key, body });
          const record = await gateway.record(rich.key, headers['x-svc-request-id'] ?? '');
          expect(Number(record['cost']) * 1e8).to.be.at.most(translated);
          expect(record['flags']).to.deep.equal(['translated']);
        }
      });
  });

  it('is not lowered by sending a text as an image, which is refused', async () => {
    const data = Buffer.from('word '.repeat(2_000)).toString('base64');
    const url = `data:text/plain;base64,${data}`;
    const image: Readonly<Record<TestProtocol, object>> = {
      messages: { type: 'image', source: { type: 'base64', media_type: 'text/plain', data } },
      chat: { type: 'image_url', image_url: { url } },
      responses: { type: 'input_image', detail: 'auto', image_url: url },
    };
    for (const from of PROTOCOLS) {
      const messages = [{ role: 'user', content: [image[from]] }];
      const body = askIn(from, { model: 'gemini-model', messages });
      const refused = await gateway.call(PATH[from], { key, body });
      expect(refused.status).to.equal(400);
      expect(refused.json.error).to.include({ code: 'NOT_TRANSLATABLE' });
    }
    expect(upstream.calls).to.have.length(0);
  });

  /** Returns the hold of a call in units of 1e-8 USD. */
  async function requiredE8(protocol: TestProtocol, body: object): Promise<number> {
    const { key: without } = await gateway.newCustomer('0');
    const { status, json } = await gateway.call(PATH[protocol], { key: without, body });
    expect(status).to.equal(402);
    return Math.round(Number(json.error.details.requiredUsd) * 1e8);
  }
});

function fromE8(units: number): string {
  return (units / 1e8).toFixed(8);
}

/** Returns the position of the event after so many pieces of text. */
function at(dialect: UpstreamDialect, texts: number): number {
  return dialect === 'gemini' ? texts : DIALECT[dialect].preamble + texts;
}

/** Removes Gemini's counts, which have another name. */
function withoutCounts(events: readonly string[]): readonly string[] {
  return events.map((event) => event.replace(/"usageMetadata":\{[^}]*\},?/, ''));
}

function openGate(): { readonly passed: Promise<void>; open(): void } {
  let open = (): void => undefined;
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open: () => open() };
}
