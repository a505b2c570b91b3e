import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { demoServer } from '../../demo/demo-server';
import { freePort } from '../support/free-port';
import { until } from '../support/until';

const KEY = 'demo-key';
const WEATHER = {
  type: 'object' as const,
  properties: { city: { type: 'string' }, days: { type: 'integer' } },
  required: ['city'],
};

const BASH = { name: 'Bash', input_schema: { type: 'object' as const } };

describe('the demo upstream', () => {
  let server: Server;
  let url: string;
  let openai: OpenAI;
  let anthropic: Anthropic;

  before(async () => {
    server = demoServer(KEY).listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0 });
    anthropic = new Anthropic({ baseURL: url, apiKey: KEY, maxRetries: 0 });
  });
  after((done) => {
    server.close(() => done());
    server.closeAllConnections();
  });

  const ask = (content: string) => [{ role: 'user' as const, content }];
  const messagesCall = (content: string) => ({ model: 'demo-model', max_tokens: 500, messages: ask(content) });
  const chatCall = (content: string) => ({ model: 'demo-model', messages: ask(content) });

  it('answers in both protocols, streamed and unstreamed, with a text that says that it is no real model', async () => {
    const whole = await anthropic.messages.create(messagesCall('Hello'));
    const streamed = await anthropic.messages.stream(messagesCall('Hello')).finalMessage();
    const completion = await openai.chat.completions.create(chatCall('Hello'));
    const chunks = await openai.chat.completions.stream(chatCall('Hello')).finalChatCompletion();
    const texts = [whole, streamed].map((message) =>
      message.content[0]?.type === 'text' ? message.content[0].text : '',
    );
    for (const text of [...texts, completion.choices[0]?.message.content, chunks.choices[0]?.message.content]) {
      assert.match(text ?? '', /Tollgate's demo upstream: there is no real model .*"Hello"/);
    }
  });

  it('embeds texts and tokens in both formats, with equal results for equal inputs', async () => {
    const inputs = ['Hello', 'Good morning', 'Hello'];
    const embed = { model: 'demo-embedding', input: inputs };
    const { data, usage } = await openai.embeddings.create({ ...embed, encoding_format: 'float' });
    const encoded = await openai.embeddings.create({ ...embed, dimensions: 3 });
    assert.deepEqual(data[0]?.embedding, data[2]?.embedding);
    assert.notDeepEqual(data[0]?.embedding, data[1]?.embedding);
    assert.deepEqual([usage.prompt_tokens, encoded.data[0]?.embedding.length], [7, 3]);
    const tokens = await openai.embeddings.create({ ...embed, input: [[1, 2], [3]] });
    assert.deepEqual([tokens.data.length, tokens.usage.total_tokens], [2, 3]);
    await assert.rejects(openai.embeddings.create({ ...embed, input: [] }), OpenAI.BadRequestError);
    await assert.rejects(openai.embeddings.create({ ...embed, model: 'demo-model' }), OpenAI.NotFoundError);
  });

  it('counts tokens by the length of the text, equally in both protocols, streamed and unstreamed', async () => {
    const short = await anthropic.messages.create(messagesCall('Hello'));
    const long = await anthropic.messages.create(messagesCall('Hello'.repeat(400)));
    const streamed = await anthropic.messages.stream(messagesCall('Hello')).finalMessage();
    const completion = await openai.chat.completions.create(chatCall('Hello'));
    assert.equal(short.usage.input_tokens, 2);
    assert.equal(long.usage.input_tokens, 500);
    assert.ok(short.usage.output_tokens > 20);
    assert.equal(short.usage.cache_read_input_tokens, 0);
    assert.equal(streamed.usage.output_tokens, short.usage.output_tokens);
    assert.equal(completion.usage?.completion_tokens, short.usage.output_tokens);
    assert.equal(completion.usage?.total_tokens, 2 + short.usage.output_tokens);
    const call = { ...chatCall('Hello'), stream: true as const, stream_options: { include_usage: true } };
    const usages: unknown[] = [];
    for await (const chunk of await openai.chat.completions.create(call)) usages.push(chunk.usage?.prompt_tokens);
    assert.equal(usages.at(-1), 2);
  });

  it('stops its answer at the token limit and reports that reason', async () => {
    const message = await anthropic.messages.create({ ...messagesCall('Hello'), max_tokens: 10 });
    assert.equal(message.stop_reason, 'max_tokens');
    assert.ok(message.usage.output_tokens <= 10);
  });

  it("calls a tool if the prompt names it or the call requires it, and answers the tool's result with text", async () => {
    const tools = [{ name: 'get_weather', input_schema: WEATHER }];
    const asked = await anthropic.messages.stream({ ...messagesCall('Use get_weather please'), tools }).finalMessage();
    const [block] = asked.content;
    assert.ok(block?.type === 'tool_use');
    assert.deepEqual([block.name, block.input, asked.stop_reason], ['get_weather', { city: 'example' }, 'tool_use']);

    const plain = await anthropic.messages.create({ ...messagesCall('Hello'), tools });
    assert.equal(plain.stop_reason, 'end_turn');

    const functions = [{ type: 'function' as const, function: { name: 'get_weather', parameters: WEATHER } }];
    const call = { ...chatCall('Hello'), tools: functions, tool_choice: 'required' as const };
    const insisted = await openai.chat.completions.create(call);
    assert.equal(insisted.choices[0]?.finish_reason, 'tool_calls');

    const [tool] = insisted.choices[0]?.message.tool_calls ?? [];
    assert.ok(tool?.type === 'function');
    const result = { role: 'tool' as const, tool_call_id: tool.id, content: 'sunny' };
    const answered = await openai.chat.completions.create({
      ...call,
      tool_choice: 'auto',
      messages: [...call.messages, { role: 'assistant', tool_calls: [tool] }, result],
    });
    assert.match(answered.choices[0]?.message.content ?? '', /The tool said: "sunny"/);
  });

  it("refuses a wrong key, an unknown model and an invalid body with each protocol's error format", async () => {
    const strangers = { messages: new Anthropic({ baseURL: url, apiKey: 'other', maxRetries: 0 }) };
    await assert.rejects(strangers.messages.messages.create(messagesCall('Hello')), Anthropic.AuthenticationError);
    await assert.rejects(
      new OpenAI({ baseURL: `${url}/v1`, apiKey: 'other', maxRetries: 0 }).chat.completions.create(chatCall('Hello')),
      (error) => error instanceof OpenAI.AuthenticationError && error.code === 'invalid_api_key',
    );
    await assert.rejects(anthropic.messages.create({ ...messagesCall('Hello'), model: 'x' }), Anthropic.NotFoundError);
    await assert.rejects(openai.chat.completions.create({ model: 'x', messages: ask('a') }), OpenAI.NotFoundError);
    await assert.rejects(openai.chat.completions.create({ model: 'demo-model', messages: [] }), OpenAI.BadRequestError);
    await assert.rejects(
      anthropic.messages.create({ ...messagesCall('a'), max_tokens: -1 }),
      Anthropic.BadRequestError,
    );
  });

  it("answers the agent's prompt after a reminder, and a tool's result before a system message", async () => {
    const said = async (messages: Anthropic.MessageParam[]) => {
      const { content } = await anthropic.messages.create({ ...messagesCall(''), messages, tools: [BASH] });
      return content[0]?.type === 'text' ? content[0].text : content[0]?.type;
    };
    const reminder = { type: 'text' as const, text: 'A reminder about Bash.' };
    const hello = { role: 'user' as const, content: [reminder, { type: 'text' as const, text: 'Hello' }] };
    const system = { role: 'system' as const, content: 'Be brief.' };
    assert.match((await said([hello, system])) ?? '', /You wrote: "Hello"/);

    const called = { type: 'tool_use' as const, id: 'toolu_1', name: 'Bash', input: {} };
    const result = { type: 'tool_result' as const, tool_use_id: 'toolu_1', content: 'sunny' };
    const asked = { role: 'user' as const, content: 'Use Bash please' };
    assert.equal(await said([asked, system]), 'tool_use');
    const answered = [
      asked,
      { role: 'assistant' as const, content: [called] },
      { role: 'user' as const, content: [result] },
    ];
    assert.match((await said([...answered, system])) ?? '', /The tool said: "sunny"/);
  });

  it('stops the stream when the client disconnects', async () => {
    let writes = 0;
    const asked = once(server, 'request') as Promise<[IncomingMessage, ServerResponse]>;
    const leaving = new AbortController();
    const stream = openai.chat.completions.create({ ...chatCall('Hello'), stream: true }, { signal: leaving.signal });
    const [, response] = await asked;
    const write = response.write.bind(response);
    response.write = ((chunk: string) => {
      writes += 1;
      return write(chunk);
    }) as typeof response.write;
    await stream;
    await until('it has begun to speak', () => writes > 2);
    leaving.abort();
    await once(response, 'close');
    const whenLeft = writes;
    await new Promise((done) => setTimeout(done, 100));
    assert.equal(response.writableEnded, false);
    assert.equal(writes, whenLeft);
  });

  describe('started as a program', () => {
    const start = (env: Record<string, string>) => {
      const child = spawn(process.execPath, ['--require', 'tsx/cjs', 'demo/upstream.ts'], {
        env: { PATH: process.env['PATH'] ?? '', ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const closed = once(child, 'close').then(([status]: unknown[]) => status);
      return { child, closed };
    };

    for (const [title, env, named] of [
      ['without a key', () => ({}), /DEMO_UPSTREAM_KEY/],
      [
        'if its port is taken',
        () => ({ DEMO_UPSTREAM_KEY: KEY, DEMO_PORT: new URL(url).port }),
        /port \d+ is taken; set DEMO_PORT/,
      ],
    ] as const) {
      it(`does not start ${title}, and the error names the variable`, async () => {
        const { child, closed } = start(env());
        let said = '';
        child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
        assert.equal(await closed, 78);
        assert.match(said, named);
      });
    }

    it('answers on its port, and exits on SIGTERM', async () => {
      const port = await freePort();
      const { child, closed } = start({ DEMO_UPSTREAM_KEY: KEY, DEMO_PORT: String(port) });
      await once(child.stdout, 'data');
      assert.equal((await fetch(`http://127.0.0.1:${port}/healthz`)).status, 200);
      child.kill('SIGTERM');
      assert.equal(await closed, 0);
    });
  });
});
