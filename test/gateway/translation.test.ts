import Anthropic from '@anthropic-ai/sdk';
import { expect } from 'chai';
import OpenAI from 'openai';
import { askIn, PATH, type TestProtocol } from '../support/calls';
import { answerOf, DIALECT, errorStreamOf, failureOf } from '../support/dialects';
import {
  answerIn,
  DIRECTIONS,
  failureIn,
  streamIn,
  UPSTREAM_DIALECTS,
  type UpstreamDialect,
} from '../support/directions';
import type { Answered, TestEndpoint } from '../support/gateway';
import { useGateway, useUpstream } from '../support/story';
import { respond, type Said } from '../support/upstream';

const WEATHER = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };

/** Tokens that every dialect can report. */
const USAGE = { input: 120, output: 30, cacheRead: 80 };

describe('The translation of calls for upstreams of another protocol', () => {
  const upstream = useUpstream();
  const other = useUpstream();
  let key: string;
  let anthropic: Anthropic;
  let openai: OpenAI;

  const gateway = useGateway(() => {
    const only = (dialect: UpstreamDialect): TestEndpoint => ({
      url: upstream.url,
      adapter: dialect,
      models: { [`${dialect}-model`]: {} },
    });
    const both = (tier: string, url: string, adapter: string, more = {}): TestEndpoint => ({
      url,
      adapter,
      tier,
      models: { both: {}, ...more },
    });
    return {
      upstreams: {
        ...Object.fromEntries(UPSTREAM_DIALECTS.map((dialect) => [`only-${dialect}`, only(dialect)])),
        'first-chat': both('official', other.url, 'chat', { 'never-model': { translate: 'never' } }),
        'second-messages': both('standard', upstream.url, 'messages'),
        'cool-messages': { url: other.url, adapter: 'messages', tier: 'official', models: { warm: {} } },
        'warm-gemini': { url: upstream.url, adapter: 'gemini', tier: 'standard', models: { warm: {} } },
      },
    };
  });

  before(async () => {
    ({ key } = await gateway.newCustomer('10'));
    anthropic = new Anthropic({ baseURL: gateway.url, apiKey: key, maxRetries: 0 });
    openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: key, maxRetries: 0 });
  });
  beforeEach(() => {
    upstream.reset();
    other.reset();
  });

  /** Sends a call with an official SDK and returns what its helper reads from the answer. */
  const ASK: Readonly<Record<TestProtocol, (model: string, isStream: boolean) => Promise<Got>>> = {
    messages: async (model, isStream) => {
      const tools = [{ name: 'weather', input_schema: WEATHER as Anthropic.Tool.InputSchema }];
      const body = { model, max_tokens: 200, tools, messages: [{ role: 'user' as const, content: 'Hello' }] };
      const message = isStream
        ? await anthropic.messages.stream(body).finalMessage()
        : await anthropic.messages.create(body);
      const { usage } = message;
      return {
        text: message.content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
        calls: message.content.flatMap((block) => (block.type === 'tool_use' ? [[block.name, block.input]] : [])),
        stop: message.stop_reason,
        input: usage.input_tokens + (usage.cache_read_input_tokens ?? 0),
        cached: usage.cache_read_input_tokens ?? 0,
        output: usage.output_tokens,
      };
    },
    chat: async (model, isStream) => {
      const tools = [{ type: 'function' as const, function: { name: 'weather', parameters: WEATHER } }];
      const body = { model, max_tokens: 200, tools, messages: [{ role: 'user' as const, content: 'Hello' }] };
      const completion = isStream
        ? await openai.chat.completions
            .stream({ ...body, stream_options: { include_usage: true } })
            .finalChatCompletion()
        : await openai.chat.completions.create(body);
      const [choice] = completion.choices;
      const calls = choice?.message.tool_calls ?? [];
      return {
        text: choice?.message.content ?? '',
        calls: calls.flatMap((call) =>
          'function' in call ? [[call.function.name, JSON.parse(call.function.arguments)]] : [],
        ),
        stop: choice?.finish_reason ?? null,
        input: completion.usage?.prompt_tokens,
        cached: completion.usage?.prompt_tokens_details?.cached_tokens ?? 0,
        output: completion.usage?.completion_tokens,
      };
    },
    responses: async (model, isStream) => {
      const tools = [{ type: 'function' as const, name: 'weather', parameters: WEATHER, strict: false }];
      const body = { model, max_output_tokens: 200, tools, input: 'Hello' };
      const response = isStream
        ? await openai.responses.stream(body).finalResponse()
        : await openai.responses.create(body);
      return {
        text: response.output_text,
        calls: response.output.flatMap((item) =>
          item.type === 'function_call' ? [[item.name, JSON.parse(item.arguments)]] : [],
        ),
        stop: response.incomplete_details?.reason ?? response.status ?? null,
        input: response.usage?.input_tokens,
        cached: response.usage?.input_tokens_details.cached_tokens ?? 0,
        output: response.usage?.output_tokens,
      };
    },
  };

  interface Got {
    readonly text: string;
    readonly calls: readonly unknown[];
    readonly stop: string | null;
    readonly input: number | undefined;
    readonly cached: number;
    readonly output: number | undefined;
  }

  const ENDS = { messages: 'end_turn', chat: 'stop', responses: 'completed' } as const;
  const CALLS = { messages: 'tool_use', chat: 'tool_calls', responses: 'completed' } as const;

  for (const { from, to, model, name } of DIRECTIONS) {
    describe(`from ${name}`, () => {
      for (const isStream of [false, true]) {
        const script = (said: Said) => (isStream ? streamIn(to, said) : answerIn(to, said));
        const how = isStream ? 'streamed' : 'in one piece';

        it(`returns an answer with its usage (${how})`, async () => {
          upstream.next(script({ texts: ['Hi ', 'there'], usage: USAGE }));
          expect(await ASK[from](model, isStream)).to.deep.equal({
            text: 'Hi there',
            calls: [],
            stop: ENDS[from],
            input: 200,
            cached: 80,
            output: 30,
          });
          expect(upstream.calls[0]?.json).to.not.have.property('metadata');
        });

        it(`returns parallel tool calls (${how})`, async () => {
          const toolCalls = [
            { name: 'weather', input: { city: 'Oslo' } },
            { name: 'weather', input: { city: 'Łódź "\\n"' } },
          ];
          upstream.next(script({ texts: ['Let me see.'], toolCalls, usage: USAGE }));
          const got = await ASK[from](model, isStream);
          expect(got.calls).to.deep.equal(toolCalls.map((call) => [call.name, call.input]));
          expect(got).to.include({ text: 'Let me see.', stop: CALLS[from] });
        });
      }

      it("keeps the status and message of a vendor's refusal", async () => {
        upstream.next(failureIn(to, 400, 'No such thing.'));
        const refused = await gateway.call(PATH[from], { key, body: askIn(from, { model }) });
        expect(refused.status).to.equal(400);
        expect(refused.json.error.message).to.equal('No such thing.');
        if (from === 'messages') expect(refused.json).to.include({ type: 'error' });
      });

      it("ends a broken stream with the error event of the client's protocol", async () => {
        upstream.next(
          streamIn(to, {
            texts: ['Hi ', 'there'],
            cut: 'reset',
            cutAfter: to === 'gemini' ? 1 : DIALECT[to].preamble + 1,
          }),
        );
        const broken = await gateway.call(PATH[from], { key, body: askIn(from, { model, stream: true }) });
        expect(DIALECT[from].textOf(broken.text)).to.equal('Hi ');
        expect(broken.text).to.match(ERROR_ENDS[from]);
        const record = await gateway.record(key, broken.headers['x-svc-request-id'] ?? '');
        expect(record).to.include({ billing: 'released', cost: '0.00000000' });
      });
    });
  }

  const ERROR_ENDS = {
    messages: /event: error\ndata: \{"type":"error"[^\n]*\n\n$/,
    chat: /data: \{"error":\{[^\n]*\n\n$/,
    responses: /event: response\.failed\ndata: [^\n]*\n\n$/,
  } as const;

  it("relays an error in the middle of a stream in the form of the client's protocol", async () => {
    for (const from of ['chat', 'responses'] as const) {
      upstream.next(errorStreamOf['messages']({ afterEvents: 5 }));
      const broken = await gateway.call(PATH[from], {
        key,
        body: askIn(from, { model: 'messages-model', stream: true }),
      });
      expect(broken.text).to.match(ERROR_ENDS[from]);
      expect(broken.text).to.include('Overloaded');
    }
  });

  it('answers 400 if the upstream answers 200 with an error that any upstream would return', async () => {
    upstream.next(respond({ body: { error: { code: 'content_filter', message: 'Not that.' } } }));
    const refused = await gateway.call(PATH.chat, { key, body: askIn('chat', { model: 'gemini-model' }) });
    expect([refused.status, refused.json.error.message]).to.deep.equal([400, 'Not that.']);
  });

  describe('in routing', () => {
    const askBoth = (protocol: TestProtocol, more = {}) =>
      gateway.call(PATH[protocol], { key, body: askIn(protocol, { model: 'both', ...more }) });

    it('comes second: the gateway calls an upstream of the protocol of the client before one of a better tier', async () => {
      upstream.next(answerOf['messages']());
      const answered = await askBoth('messages');
      expect(answered.headers).to.include({ 'x-routing-provider': 'second-messages' });
      expect(other.calls).to.have.length(0);
    });

    it('allows failover to an upstream of another protocol', async () => {
      upstream.always(failureOf['messages'](503));
      other.next(answerOf['chat']({ text: 'Hi from the other' }));
      const answered = await askBoth('messages');
      expect(answered.json.content).to.deep.include({ type: 'text', text: 'Hi from the other' });
      expect(answered.headers).to.include({ 'x-routing-provider': 'first-chat', 'x-routing-translated': 'true' });
    });

    it('names the member that it cannot translate; the gateway calls no upstream and charges nothing', async () => {
      const before = await gateway.balance(key);
      const refused = await gateway.call(PATH.chat, {
        key,
        body: askIn('chat', { model: 'messages-model', temperature: 1.5 }),
      });
      expect(refused.status).to.equal(400);
      expect(refused.json.error).to.include({ code: 'NOT_TRANSLATABLE', param: 'temperature' });
      expect(upstream.calls).to.have.length(0);
      expect(await gateway.balance(key)).to.deep.equal(before);
    });

    it('reports to the client and in the record an output format that the upstream does not enforce', async () => {
      const schema = {
        type: 'object',
        properties: { id: { const: 1 } },
        required: ['id'],
        additionalProperties: false,
      };
      const flagsOf = async (format: object) => {
        upstream.next(answerOf['chat']());
        const body = askIn('messages', { model: 'chat-model', output_config: { format } });
        const { headers } = await gateway.call(PATH.messages, { key, body });
        const { flags } = await gateway.record(key, headers['x-svc-request-id'] ?? '');
        return [headers['x-routing-translated'], flags];
      };
      expect(await flagsOf({ type: 'json_schema', schema })).to.deep.equal(['true', ['translated']]);
      const open = { ...schema, required: [] };
      expect(await flagsOf({ type: 'json_schema', schema: open })).to.deep.equal([
        'true;weaker="output_config.format"',
        ['translated', 'weakened'],
      ]);
    });

    it('refuses a call with a prefilled beginning of the answer, because the upstream would begin a new answer', async () => {
      const talk = [
        { role: 'user', content: 'Name a town.' },
        { role: 'assistant', content: 'The town is' },
      ];
      const ways = [
        ['messages', 'chat'],
        ['messages', 'responses'],
        ['messages', 'gemini'],
        ['chat', 'messages'],
        ['chat', 'gemini'],
        ['responses', 'gemini'],
      ] as const;
      for (const [from, to] of ways) {
        const body = askIn(from, { model: `${to}-model`, messages: talk });
        const refused = await gateway.call(PATH[from], { key, body });
        expect(refused.status, `${from} to ${to}`).to.equal(400);
        expect(refused.text).to.contain(' ends with ').and.to.contain('NOT_TRANSLATABLE');
      }
      expect(upstream.calls).to.have.length(0);
    });

    it('is not needed if one upstream accepts the call natively and the call cannot be translated for the other one', async () => {
      upstream.always(failureOf['messages'](503));
      other.next(answerOf['chat']());
      const answered = await gateway.call(PATH.chat, { key, body: askIn('chat', { model: 'both', temperature: 1.5 }) });
      expect(answered.status).to.equal(200);
    });

    describe('skips an upstream for which it cannot translate the call, and', () => {
      const askWarm = (model: string) =>
        gateway.call(PATH.chat, { key, body: askIn('chat', { model, temperature: 1.5 }) });

      it('counts no attempt for that upstream, and records the reason', async () => {
        upstream.next(answerIn('gemini', { text: 'Hi', usage: USAGE }));
        const answered = await askWarm('warm');
        expect(answered.headers).to.include({ 'x-routing-provider': 'warm-gemini', 'x-routing-attempts': '1' });
        const { attempts, routing, made } = await recorded(answered);
        expect(attempts).to.equal(1);
        expect(routing.attempts.map(({ upstream: name, outcome }) => [name, outcome])).to.deep.equal([
          ['cool-messages', 'not_translatable'],
          ['warm-gemini', 'answered'],
        ]);
        expect(routing.attempts[0]?.why).to.match(/^`temperature` /);
        expect(made).to.deep.equal(['warm-gemini']);
        expect(other.calls).to.have.length(0);
      });

      it('counts no attempt if there is no other upstream', async () => {
        const refused = await askWarm('messages-model');
        expect(refused.headers).to.include({ 'x-routing-attempts': '0' });
        const { attempts, upstream: name, made } = await recorded(refused);
        expect([attempts, name, made]).to.deep.equal([0, null, []]);
      });

      it('retries the call at the previous upstream, as if that upstream were the last candidate', async () => {
        other.next(failureOf['chat'](503));
        other.next(answerOf['chat']());
        const answered = await askWarm('both');
        expect(answered.status).to.equal(200);
        expect(answered.headers).to.include({ 'x-routing-provider': 'first-chat', 'x-routing-attempts': '2' });
      });

      it('relays the error of the previous upstream', async () => {
        other.next(failureOf['chat'](404));
        const refused = await askWarm('both');
        expect(refused.status).to.equal(404);
        expect(refused.headers).to.include({ 'x-svc-source': 'provider' });
      });

      it('reports a rate limit of all upstreams if every called upstream was rate limited', async () => {
        other.always(failureOf['chat'](429));
        const refused = await askWarm('both');
        expect(refused.json.error).to.include({ code: 'UPSTREAM_RATE_LIMITED' });
      });
    });

    interface Recorded {
      readonly attempts: number;
      readonly upstream: string | null;
      readonly routing: { readonly attempts: readonly { upstream: string; outcome: string; why?: string }[] };
      /** The upstreams in the rows of attempts. */
      readonly made: readonly string[];
    }

    async function recorded({ headers }: Answered): Promise<Recorded> {
      const requestId = headers['x-svc-request-id'] ?? '';
      await gateway.record(key, requestId);
      const record = (await gateway.admin('GET', `/admin/v1/usage/${requestId}`)).json;
      const { items } = (await gateway.admin('GET', `/admin/v1/usage/${requestId}/attempts`)).json;
      return { ...record, made: items.map(({ upstream: name }: { upstream: string }) => name) };
    }

    it('is off for a model with `translate: false`', async () => {
      const refused = await gateway.call(PATH.messages, { key, body: askIn('messages', { model: 'never-model' }) });
      expect(refused.status).to.equal(400);
      expect(refused.json.error).to.include({ code: 'MODEL_NOT_SUPPORTED' });
    });
  });
});
