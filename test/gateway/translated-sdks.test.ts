import Anthropic from '@anthropic-ai/sdk';
import { jsonSchemaOutputFormat } from '@anthropic-ai/sdk/helpers/json-schema';
import { expect } from 'chai';
import OpenAI from 'openai';
import { makeParseableResponseFormat, makeParseableTextFormat } from 'openai/lib/parser';
import type { TestProtocol } from '../support/calls';
import { answerIn, DIRECTIONS, streamIn, UPSTREAM_DIALECTS, type UpstreamDialect } from '../support/directions';
import { startGateway, type TestGateway } from '../support/gateway';
import { rejection } from '../support/rejection';
import { respond, type Script, startUpstream, type TestUpstream } from '../support/upstream';

// biome-ignore lint/suspicious/noExplicitAny: bodies of four dialects
type Body = any;

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const PDF = Buffer.from('%PDF-1.4 of the test').toString('base64');
const PICTURE_URL = 'https://pictures.example/red.png';
const CITY = {
  type: 'object' as const,
  properties: { city: { type: 'string' as const } },
  required: ['city'] as const,
};
const PLAIN_CITY = { ...CITY, required: ['city'] };

interface Called {
  readonly id: string;
  readonly city: string;
}

/** The result of one call, from the helper of an SDK. */
interface Told {
  readonly text: string;
  readonly calls: readonly Called[];
  readonly stop: string | null | undefined;
  /** The messages that the user adds to the next call. */
  readonly said: readonly unknown[];
  /** Text and tool inputs, collected from the helper's events. */
  readonly pieces: { readonly text: string; readonly inputs: readonly unknown[] };
}

/** The actions of a user of an official SDK. */
interface User {
  stream(model: string, conversation: readonly unknown[]): Promise<Told>;
  results(calls: readonly Called[]): readonly unknown[];
  parse(model: string): Promise<unknown>;
  show(model: string): Promise<unknown>;
  /** Sends a document by URL; undefined if the protocol has none. */
  readonly showByUrl?: (model: string) => Promise<unknown>;
  /** Sends stop sequences; undefined if the protocol has none. */
  readonly stopAt?: (model: string, words: readonly string[]) => Promise<unknown>;
  /** Returns the stop reason of an answer that a filter ended, and the text of the refusal. */
  refusal(model: string): Promise<{ readonly stop: string | null | undefined; readonly words: string | undefined }>;
}

describe('The official SDKs at upstreams of another dialect', function () {
  this.timeout(60_000);
  let upstream: TestUpstream;
  let gateway: TestGateway;
  let users: Readonly<Record<TestProtocol, User>>;

  before(async () => {
    upstream = await startUpstream();
    gateway = await startGateway({
      upstreams: Object.fromEntries(
        UPSTREAM_DIALECTS.map((dialect) => [
          `only-${dialect}`,
          { url: upstream.url, adapter: dialect, models: { [`${dialect}-model`]: {} } },
        ]),
      ),
    });
    const { key } = await gateway.newCustomer('100');
    const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: key, maxRetries: 0 });
    users = {
      messages: messagesUser(new Anthropic({ baseURL: gateway.url, apiKey: key, maxRetries: 0 })),
      chat: chatUser(openai),
      responses: responsesUser(openai),
    };
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });
  beforeEach(() => upstream.reset());

  const asked = (): Body => upstream.calls.at(-1)?.json;
  const call = (id: string, city: string) => ({ id, name: 'weather', input: { city } });
  const ROUNDS = [
    [call('call_a', 'Oslo'), call('call_b', 'Łódź "\\n" 🌧')],
    [call('call_c', 'Bergen'), call('call_d', '')],
  ];

  for (const { from, to, model, name } of DIRECTIONS) {
    describe(name, () => {
      it('run a tool loop of two rounds with parallel calls', async () => {
        const user = users[from];
        let conversation: readonly unknown[] = [{ role: 'user', content: 'Weather?' }];
        for (const [at, toolCalls] of ROUNDS.entries()) {
          upstream.next(streamIn(to, { texts: ['I look ', `${at}.`], toolCalls }));
          const told = await user.stream(model, conversation);
          expect(told.text).to.equal(`I look ${at}.`);
          expect(told.calls.map(({ city }) => city)).to.deep.equal(toolCalls.map(({ input }) => input.city));
          conversation = [...conversation, ...told.said, ...user.results(told.calls)];
        }
        upstream.next(streamIn(to, { text: 'Rain everywhere.' }));
        const { text } = await user.stream(model, conversation);
        expect(text).to.equal('Rain everywhere.');
        const { calls, results } = PAIRS[to](asked());
        const cities = ROUNDS.flat().map(({ input }) => input.city);
        expect(calls.map(({ city }) => city)).to.deep.equal(cities);
        expect(results).to.deep.equal(calls.map(({ id, city }) => ({ id, text: `Rain in ${city}` })));
        expect(new Set(calls.map(({ id }) => id)).size).to.equal(4);
      });

      it('get the same events from a stream that arrives byte by byte', async () => {
        const said = { texts: ['Grüß ', '🌧 ', 'Gott'], toolCalls: ROUNDS[0] ?? [], usage: { input: 7, output: 9 } };
        upstream.next(streamIn(to, said), streamIn(to, { ...said, splitBytes: 1 }));
        const conversation = [{ role: 'user', content: 'Weather?' }];
        const whole = await users[from].stream(model, conversation);
        const split = await users[from].stream(model, conversation);
        expect(whole.pieces).to.deep.equal({
          text: 'Grüß 🌧 Gott',
          inputs: [{ city: 'Oslo' }, { city: 'Łódź "\\n" 🌧' }],
        });
        const { said: _, ...same } = whole;
        expect(split).to.deep.include(same);
      });

      it('parse structured output', async () => {
        upstream.next(answerIn(to, { text: '{"city":"Łódź"}' }));
        expect(await users[from].parse(model)).to.deep.equal({ city: 'Łódź' });
        expect(SCHEMA_IN[to](asked())).to.deep.include({ type: 'object', required: ['city'] });
      });

      it('send images and documents under a system prompt', async () => {
        upstream.next(answerIn(to));
        await users[from].show(model);
        const body = JSON.stringify(asked());
        for (const part of [PIXEL, PICTURE_URL, PDF, 'Be brief.']) expect(body).to.include(part);
        expect(SYSTEM_IN[to](asked())).to.equal('Be brief.');
      });

      const byUrl = async () => users[from].showByUrl?.(model);
      if (from !== 'chat' && to === 'chat')
        it('get 400 for a document by URL, because the vendor fetches no documents', async () => {
          expect(String(await rejection(byUrl()))).to.match(/400.*(document|input_file)/s);
          expect(upstream.calls).to.have.length(0);
        });
      else if (from !== 'chat')
        it('send documents by URL', async () => {
          upstream.next(answerIn(to));
          await byUrl();
          expect(JSON.stringify(asked())).to.include('https://papers.example/paper.pdf');
        });

      const stopAt = async () => users[from].stopAt?.(model, ['END', 'FIN']);
      if (from !== 'responses' && to === 'responses')
        it('get 400 for stop sequences, because the vendor has none', async () => {
          expect(String(await rejection(stopAt()))).to.match(/400.*stop/s);
          expect(upstream.calls).to.have.length(0);
        });
      else if (from !== 'responses' && to !== 'responses')
        it('send stop sequences', async () => {
          upstream.next(answerIn(to));
          await stopAt();
          expect(STOP_IN[to](asked())).to.deep.equal(['END', 'FIN']);
        });

      it('get the stop reason and text of a refusal', async () => {
        upstream.next(answerIn(to, { texts: ['No'], stop: 'refusal' }));
        expect((await users[from].refusal(model)).stop).to.equal(REFUSED[from]);
        if (to === 'gemini') return;
        upstream.next(REFUSING[to]);
        expect((await users[from].refusal(model)).words).to.equal('I will not.');
      });
    });
  }
});

const REFUSED = { messages: 'refusal', chat: 'content_filter', responses: 'content_filter' } as const;

/** Answers in which the model refuses with a text. */
const REFUSING: Readonly<Record<TestProtocol, Script>> = {
  messages: respond({
    body: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [],
      stop_reason: 'refusal',
      stop_details: { type: 'refusal', explanation: 'I will not.' },
      usage: { input_tokens: 3, output_tokens: 4 },
    },
  }),
  chat: respond({
    body: {
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [
        { index: 0, message: { role: 'assistant', content: null, refusal: 'I will not.' }, finish_reason: 'stop' },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
    },
  }),
  responses: respond({
    body: {
      id: 'resp_1',
      object: 'response',
      status: 'completed',
      model: 'm',
      output: [
        { id: 'msg_1', type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'I will not.' }] },
      ],
      usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 },
    },
  }),
};

function messagesUser(anthropic: Anthropic): User {
  const tools = [{ name: 'weather', input_schema: PLAIN_CITY }];
  const ask = (model: string, content: unknown, more = {}) =>
    anthropic.messages.create({
      model,
      max_tokens: 100,
      messages: [{ role: 'user', content: content as string }],
      ...more,
    });
  const pdf = (source: unknown) => ({ type: 'document', source });
  return {
    stream: async (model, conversation) => {
      const messages = conversation as Anthropic.MessageParam[];
      const stream = anthropic.messages.stream({ model, max_tokens: 100, tools, messages });
      let text = '';
      const inputs: unknown[] = [];
      stream.on('text', (piece) => {
        text += piece;
      });
      stream.on('contentBlock', (block) => {
        if (block.type === 'tool_use') inputs.push(block.input);
      });
      const { content, stop_reason } = await stream.finalMessage();
      return {
        text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
        calls: content.flatMap((block) =>
          block.type === 'tool_use' ? [{ id: block.id, city: (block.input as { city: string }).city }] : [],
        ),
        stop: stop_reason,
        said: [{ role: 'assistant', content }],
        pieces: { text, inputs },
      };
    },
    results: (calls) => [
      {
        role: 'user',
        content: calls.map(({ id, city }) => ({ type: 'tool_result', tool_use_id: id, content: `Rain in ${city}` })),
      },
    ],
    parse: async (model) => {
      const { parsed_output } = await anthropic.messages.parse({
        model,
        max_tokens: 100,
        messages: [{ role: 'user', content: 'Where?' }],
        output_config: { format: jsonSchemaOutputFormat({ ...CITY, additionalProperties: false }) },
      });
      return parsed_output;
    },
    show: (model) =>
      ask(
        model,
        [
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } },
          { type: 'image', source: { type: 'url', url: PICTURE_URL } },
          pdf({ type: 'base64', media_type: 'application/pdf', data: PDF }),
        ],
        { system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }] },
      ),
    showByUrl: (model) => ask(model, [pdf({ type: 'url', url: 'https://papers.example/paper.pdf' })]),
    stopAt: (model, words) => ask(model, 'Hi', { stop_sequences: words }),
    refusal: async (model) => {
      const { stop_reason, content } = await ask(model, 'Hi');
      const [block] = content;
      return { stop: stop_reason, words: block?.type === 'text' ? block.text : undefined };
    },
  };
}

function chatUser(openai: OpenAI): User {
  const tools = [{ type: 'function' as const, function: { name: 'weather', parameters: PLAIN_CITY } }];
  const ask = (model: string, content: unknown, more = {}) =>
    openai.chat.completions.create({
      model,
      max_completion_tokens: 100,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: content as string },
      ],
      ...more,
    });
  return {
    stream: async (model, conversation) => {
      const messages = conversation as OpenAI.ChatCompletionMessageParam[];
      const stream = openai.chat.completions.stream({ model, tools, messages });
      let text = '';
      const inputs: unknown[] = [];
      stream.on('content.delta', ({ delta }) => {
        text += delta;
      });
      stream.on('tool_calls.function.arguments.done', (done) => inputs.push(JSON.parse(done.arguments)));
      const [choice] = (await stream.finalChatCompletion()).choices;
      const calls = choice?.message.tool_calls ?? [];
      return {
        text: choice?.message.content ?? '',
        calls: calls.map(({ id, function: called }) => ({
          id,
          city: (JSON.parse(called.arguments) as { city: string }).city,
        })),
        stop: choice?.finish_reason,
        said: [{ role: 'assistant', content: choice?.message.content, tool_calls: calls.map(plainCall) }],
        pieces: { text, inputs },
      };
    },
    results: (calls) => calls.map(({ id, city }) => ({ role: 'tool', tool_call_id: id, content: `Rain in ${city}` })),
    parse: async (model) => {
      const format = { type: 'json_schema', json_schema: { name: 'where', strict: true, schema: STRICT } } as const;
      const completion = await openai.chat.completions.parse({
        model,
        messages: [{ role: 'user', content: 'Where?' }],
        response_format: makeParseableResponseFormat(format, (text) => JSON.parse(text) as unknown),
      });
      return completion.choices[0]?.message.parsed;
    },
    show: (model) =>
      ask(model, [
        { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } },
        { type: 'image_url', image_url: { url: PICTURE_URL } },
        { type: 'file', file: { filename: 'paper.pdf', file_data: `data:application/pdf;base64,${PDF}` } },
      ]),
    stopAt: (model, words) => ask(model, 'Hi', { stop: words }),
    refusal: async (model) => {
      const [choice] = (await ask(model, 'Hi')).choices;
      return { stop: choice?.finish_reason, words: choice?.message.refusal ?? undefined };
    },
  };
}

const STRICT = { ...PLAIN_CITY, additionalProperties: false };

function responsesUser(openai: OpenAI): User {
  const tools = [{ type: 'function' as const, name: 'weather', parameters: PLAIN_CITY, strict: false }];
  const ask = (model: string, content: unknown) =>
    openai.responses.create({
      model,
      max_output_tokens: 100,
      instructions: 'Be brief.',
      input: [{ role: 'user', content: content as string }],
    });
  return {
    stream: async (model, conversation) => {
      const input = conversation as OpenAI.Responses.ResponseInputItem[];
      const stream = openai.responses.stream({ model, tools, input });
      let text = '';
      const inputs: unknown[] = [];
      stream.on('response.output_text.delta', ({ delta }) => {
        text += delta;
      });
      stream.on('response.function_call_arguments.done', (done) => inputs.push(JSON.parse(done.arguments)));
      const { output, output_text, status } = await stream.finalResponse();
      return {
        text: output_text,
        calls: output.flatMap((item) =>
          item.type === 'function_call'
            ? [{ id: item.call_id, city: (JSON.parse(item.arguments) as { city: string }).city }]
            : [],
        ),
        stop: status,
        said: output,
        pieces: { text, inputs },
      };
    },
    results: (calls) =>
      calls.map(({ id, city }) => ({ type: 'function_call_output', call_id: id, output: `Rain in ${city}` })),
    parse: async (model) => {
      const format = { type: 'json_schema', name: 'where', strict: true, schema: STRICT } as const;
      const response = await openai.responses.parse({
        model,
        input: 'Where?',
        text: { format: makeParseableTextFormat(format, (text) => JSON.parse(text) as unknown) },
      });
      return response.output_parsed;
    },
    show: (model) =>
      ask(model, [
        { type: 'input_image', detail: 'auto', image_url: `data:image/png;base64,${PIXEL}` },
        { type: 'input_image', detail: 'auto', image_url: PICTURE_URL },
        { type: 'input_file', filename: 'paper.pdf', file_data: `data:application/pdf;base64,${PDF}` },
      ]),
    showByUrl: (model) => ask(model, [{ type: 'input_file', file_url: 'https://papers.example/paper.pdf' }]),
    refusal: async (model) => {
      const { incomplete_details, output } = await ask(model, 'Hi');
      const [item] = output;
      const part = item?.type === 'message' ? item.content[0] : undefined;
      return { stop: incomplete_details?.reason, words: part?.type === 'refusal' ? part.refusal : undefined };
    },
  };
}

/** Returns a call without the members that the helper has parsed. */
function plainCall({ id, function: { name, arguments: args } }: OpenAI.ChatCompletionMessageFunctionToolCall) {
  return { id, type: 'function', function: { name, arguments: args } };
}

interface Pairs {
  readonly calls: readonly Called[];
  readonly results: readonly { readonly id: string; readonly text: string }[];
}

/** Reads the tool calls and results from a request, in order. */
const PAIRS: Readonly<Record<UpstreamDialect, (body: Body) => Pairs>> = {
  messages: ({ messages }) => {
    const blocks: Body[] = messages.flatMap(({ content }: Body) => content);
    return {
      calls: blocks.filter(({ type }) => type === 'tool_use').map(({ id, input }) => ({ id, city: input.city })),
      results: blocks
        .filter(({ type }) => type === 'tool_result')
        .map(({ tool_use_id: id, content }) => ({ id, text: content[0].text })),
    };
  },
  chat: ({ messages }) => ({
    calls: messages
      .flatMap(({ tool_calls = [] }: Body) => tool_calls)
      .map(({ id, function: called }: Body) => ({ id, city: JSON.parse(called.arguments).city })),
    results: messages
      .filter(({ role }: Body) => role === 'tool')
      .map(({ tool_call_id: id, content: text }: Body) => ({ id, text })),
  }),
  responses: ({ input }) => ({
    calls: input
      .filter(({ type }: Body) => type === 'function_call')
      .map(({ call_id: id, arguments: args }: Body) => ({ id, city: JSON.parse(args).city })),
    results: input
      .filter(({ type }: Body) => type === 'function_call_output')
      .map(({ call_id: id, output: text }: Body) => ({ id, text })),
  }),
  gemini: ({ contents }) => {
    const parts: Body[] = contents.flatMap((content: Body) => content.parts);
    return {
      calls: parts.flatMap(({ functionCall: called }) =>
        called === undefined ? [] : [{ id: called.id, city: called.args.city }],
      ),
      results: parts.flatMap(({ functionResponse: said }) =>
        said === undefined ? [] : [{ id: said.id, text: said.response.output }],
      ),
    };
  },
};

const SCHEMA_IN: Readonly<Record<UpstreamDialect, (body: Body) => unknown>> = {
  messages: ({ output_config }) => output_config.format.schema,
  chat: ({ response_format }) => response_format.json_schema.schema,
  responses: ({ text }) => text.format.schema,
  gemini: ({ generationConfig }) => generationConfig.responseJsonSchema,
};

const SYSTEM_IN: Readonly<Record<UpstreamDialect, (body: Body) => unknown>> = {
  messages: ({ system }) => system[0].text,
  chat: ({ messages }) => messages[0].content,
  responses: ({ instructions, input }) => instructions ?? input[0].content,
  gemini: ({ systemInstruction }) => systemInstruction.parts[0].text,
};

const STOP_IN: Readonly<Record<Exclude<UpstreamDialect, 'responses'>, (body: Body) => unknown>> = {
  messages: ({ stop_sequences }) => stop_sequences,
  chat: ({ stop }) => stop,
  gemini: ({ generationConfig }) => generationConfig.stopSequences,
};
