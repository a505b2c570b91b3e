import assert from 'node:assert/strict';
import { connect } from 'node:net';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { request } from 'undici';
import {
  beforeBody,
  chatAnswer,
  chatErrorStream,
  chatFailure,
  chatStream,
  closeBeforeHeaders,
  closedPort,
  messagesAnswer,
  messagesErrorStream,
  messagesFailure,
  messagesStream,
  neverAnswer,
  rawBytes,
  redirect,
  resetBeforeHeaders,
  respond,
  type Script,
  startUpstream,
  type TestUpstream,
  when,
} from './upstream';

const TOOL = { name: 'get_weather', input: { city: 'Zürich', days: 3, nested: { deep: [1, 2, 3] } } };

describe('the scripted upstream of the tests', () => {
  let upstream: TestUpstream;
  let openai: OpenAI;
  let anthropic: Anthropic;

  before(async () => {
    upstream = await startUpstream();
    openai = new OpenAI({ baseURL: `${upstream.url}/v1`, apiKey: 'key', maxRetries: 0 });
    anthropic = new Anthropic({ baseURL: upstream.url, apiKey: 'key', maxRetries: 0 });
  });
  beforeEach(() => upstream.reset());
  after(() => upstream.stop());

  const ask = async (): Promise<string> => {
    const answer = await request(`${upstream.url}/v1/messages`, { method: 'POST', body: '{}' });
    return answer.body.text();
  };
  const codeOf = async (asked: Promise<unknown>): Promise<unknown> => {
    const error = await asked.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    return (error as { code?: unknown } | undefined)?.code;
  };

  describe('for the official Messages client', () => {
    const call = { model: 'test-model', max_tokens: 10, messages: [{ role: 'user' as const, content: 'Hi' }] };

    it('answers in one piece', async () => {
      upstream.next(messagesAnswer({ text: 'Grüezi', usage: { input: 7, output: 3, cacheRead: 2 } }));
      const message = await anthropic.messages.create(call);
      assert.deepEqual(message.content, [{ type: 'text', text: 'Grüezi' }]);
      assert.equal(message.stop_reason, 'end_turn');
      assert.equal(message.usage.input_tokens, 7);
      assert.equal(message.usage.cache_read_input_tokens, 2);
      assert.deepEqual(upstream.calls[0]?.json, call);
    });

    it('answers as a stream, with tool calls', async () => {
      upstream.next(messagesStream({ texts: ['Grü', 'ezi'], toolCalls: [TOOL], usage: { output: 9 } }));
      const message = await anthropic.messages.stream(call).finalMessage();
      assert.deepEqual(
        message.content.map((block) => (block.type === 'text' ? block.text : block.type === 'tool_use' && block.input)),
        ['Grüezi', TOOL.input],
      );
      assert.equal(message.stop_reason, 'tool_use');
      assert.equal(message.usage.output_tokens, 9);
    });

    it("fails with the client's own errors, with status and type, even in a stream", async () => {
      upstream.next(messagesFailure(529, { type: 'overloaded_error', message: 'Busy' }), messagesErrorStream());
      await assert.rejects(
        anthropic.messages.create(call),
        (error) => error instanceof Anthropic.APIError && error.status === 529 && /Busy/.test(error.message),
      );
      await assert.rejects(anthropic.messages.stream(call).finalMessage(), /Overloaded/);
    });
  });

  describe('for the official Chat client', () => {
    const call = { model: 'test-model', messages: [{ role: 'user' as const, content: 'Hi' }] };

    it('answers in one piece', async () => {
      upstream.next(chatAnswer({ text: 'Grüezi', usage: { input: 7, output: 3, cacheRead: 2 } }));
      const completion = await openai.chat.completions.create(call);
      assert.equal(completion.choices[0]?.message.content, 'Grüezi');
      assert.equal(completion.choices[0]?.finish_reason, 'stop');
      assert.equal(completion.usage?.prompt_tokens, 9);
      assert.equal(completion.usage?.total_tokens, 12);
    });

    it('answers as a stream, with tool calls', async () => {
      upstream.next(chatStream({ texts: ['Grü', 'ezi'], toolCalls: [TOOL] }));
      const completion = await openai.chat.completions.stream(call).finalChatCompletion();
      const [choice] = completion.choices;
      assert.equal(choice?.message.content, 'Grüezi');
      assert.equal(choice?.finish_reason, 'tool_calls');
      const [tool] = choice?.message.tool_calls ?? [];
      assert.ok(tool?.type === 'function');
      assert.deepEqual(JSON.parse(tool.function.arguments), TOOL.input);
    });

    it('sends the usage chunk if the call requests it, and only then', async () => {
      upstream.always(chatStream({ usage: { input: 7, output: 3 } }));
      const usages = async (include: boolean): Promise<unknown[]> => {
        const body = {
          ...call,
          stream: true as const,
          ...(include ? { stream_options: { include_usage: true } } : {}),
        };
        const seen: unknown[] = [];
        for await (const chunk of await openai.chat.completions.create(body)) {
          if (chunk.usage) seen.push(chunk.usage.total_tokens);
        }
        return seen;
      };
      assert.deepEqual(await usages(true), [10]);
      assert.deepEqual(await usages(false), []);
    });

    it("fails with the client's own errors, with status and code, even in a stream", async () => {
      upstream.next(chatFailure(429, { code: 'rate_limit_exceeded', message: 'Slow down' }), chatErrorStream());
      await assert.rejects(
        openai.chat.completions.create(call),
        (error) => error instanceof OpenAI.APIError && error.status === 429 && error.code === 'rate_limit_exceeded',
      );
      await assert.rejects(openai.chat.completions.stream(call).finalChatCompletion(), /Overloaded/);
    });
  });

  describe('with its record of calls', () => {
    it('has method, path, headers, body and connection of each call', async () => {
      upstream.always(respond({ body: 'ok' }));
      await request(`${upstream.url}/v1/messages?beta=true`, {
        method: 'POST',
        headers: { 'X-One': '1' },
        body: '{"a":1}',
      });
      const call = await upstream.call(1);
      await call.ended;
      assert.equal(call.method, 'POST');
      assert.equal(call.path, '/v1/messages?beta=true');
      assert.equal(call.headers['x-one'], '1');
      assert.equal(call.body.toString(), '{"a":1}');
      assert.deepEqual(call.json, { a: 1 });
      assert.ok(call.connection >= 1 && call.connection <= upstream.connections);
      assert.equal(call.closedEarly, false);
    });

    it('has the time when a client disconnected', async () => {
      upstream.next(messagesStream({ cut: 'stall', cutAfter: 3 }));
      const leaving = new AbortController();
      const asked = request(upstream.url, { method: 'POST', body: '{}', signal: leaving.signal });
      const call = await upstream.call(1);
      await asked.then(({ body }) => body.on('error', () => undefined).resume());
      assert.equal(call.closedEarly, false);
      leaving.abort();
      await call.clientGone;
      assert.equal(call.closedEarly, true);
    });

    it('does not count a connection that the script itself broke as a disconnect', async () => {
      upstream.next(resetBeforeHeaders());
      await codeOf(ask());
      await (await upstream.call(1)).ended;
      assert.equal(upstream.calls[0]?.closedEarly, false);
    });
  });

  describe('with scripts for faults', () => {
    it('runs the queued scripts in turn, then the default one, and answers 500 without any', async () => {
      upstream.next(respond({ body: 'one' }), respond({ body: 'two' }));
      upstream.always(respond({ body: 'always' }));
      assert.deepEqual([await ask(), await ask(), await ask(), await ask()], ['one', 'two', 'always', 'always']);
      upstream.reset();
      assert.match(await ask(), /no script/);
    });

    it('fails before the head: refused, reset, closed, malformed or silent', async () => {
      assert.equal(await codeOf(request(await closedPort())), 'ECONNREFUSED');
      upstream.next(resetBeforeHeaders(), closeBeforeHeaders(), rawBytes('SSH-2.0\r\n'), neverAnswer());
      assert.equal(await codeOf(ask()), 'ECONNRESET');
      assert.equal(await codeOf(ask()), 'UND_ERR_SOCKET');
      await assert.rejects(ask(), /does not match the HTTP/);
      const silent = request(upstream.url, { method: 'POST', headersTimeout: 50 });
      assert.equal(await codeOf(silent), 'UND_ERR_HEADERS_TIMEOUT');
      await (await upstream.call(4)).clientGone;
    });

    it('fails within the body after a number of events, in each way', async () => {
      const script = (cut: 'end' | 'fin' | 'fin-mid-chunk' | 'reset'): Script => messagesStream({ cutAfter: 4, cut });
      const { events } = messagesStream();
      upstream.next(script('end'));
      assert.equal(await ask(), events.slice(0, 4).join(''));
      for (const cut of ['fin', 'fin-mid-chunk', 'reset'] as const) {
        upstream.next(script(cut));
        assert.match(String(await codeOf(ask())), /UND_ERR_SOCKET|ECONNRESET|HPE_/, cut);
      }
    });

    it('sends a FIN within a chunk after half of the next event', async () => {
      const { events } = messagesStream();
      upstream.next(messagesStream({ cutAfter: 1, cut: 'fin-mid-chunk' }));
      const raw = await rawAnswer(upstream.port);
      const half = (events[1] ?? '').slice(0, Math.ceil((events[1] ?? '').length / 2));
      assert.ok(raw.endsWith(`\r\n${half}`), raw);
    });

    it('sends a body that is shorter than its stated length', async () => {
      upstream.next(respond({ body: 'ten bytes.', cutBody: 4 }));
      assert.equal(await codeOf(ask()), 'UND_ERR_SOCKET');
    });

    it('splits the bytes at given sizes, and loses none', async () => {
      for (const splitBytes of [1, 7, [3, 1, 50]]) {
        const script = chatStream({ texts: ['Grü', 'ezi 👋'], splitBytes, withUsage: true });
        upstream.next(script);
        assert.equal(await ask(), script.text);
      }
      upstream.next(chatStream({ splitBytes: 5 }));
      const raw = await rawAnswer(upstream.port);
      assert.match(raw, /\r\n5\r\n.{5}\r\n5\r\n/s);
    });

    it('compresses, ends lines with CR LF, omits the end, garbles an event, changes usage', async () => {
      upstream.next(messagesStream({ gzip: true }));
      const answer = await request(upstream.url, { method: 'POST' });
      assert.equal(answer.headers['content-encoding'], 'gzip');
      const { gunzipSync } = await import('node:zlib');
      const zipped = Buffer.from(await answer.body.arrayBuffer());
      assert.equal(gunzipSync(zipped).toString(), messagesStream().text);

      upstream.next(
        messagesStream({ crlf: true }),
        messagesStream({ withoutDone: true }),
        chatStream({ withoutDone: true }),
        messagesStream({ malformedAt: { event: 4 } }),
        messagesStream({ rawUsage: { output_tokens: -1 } }),
        chatStream({ rawUsage: null, withUsage: true }),
      );
      assert.ok(!/[^\r]\n/.test(await ask()));
      assert.ok(!(await ask()).includes('message_stop'));
      assert.ok(!(await ask()).includes('[DONE]'));
      assert.ok((await ask()).includes('data: {"half": \n\n'));
      assert.ok((await ask()).includes('"usage":{"output_tokens":-1}'));
      assert.ok(!(await ask()).includes('"usage":{'));
    });

    it('delays the first content until the test releases it', async () => {
      let go = (): void => undefined;
      const until = new Promise<void>((resolve) => {
        go = resolve;
      });
      const script = messagesStream({ texts: ['content'], waitFor: { before: 3, until } });
      upstream.next(script);
      const { body } = await request(upstream.url, { method: 'POST' });
      let seen = '';
      for await (const chunk of body as AsyncIterable<Buffer>) {
        seen += chunk.toString();
        if (seen === script.events.slice(0, 3).join('')) go();
      }
      assert.equal(seen, script.text);
    });

    it('redirects, and can answer before the body has arrived or later', async () => {
      upstream.next(redirect('http://127.0.0.1:1/', 307), when(Promise.resolve(), respond({ body: 'now' })));
      const moved = await request(upstream.url, { method: 'POST' });
      assert.deepEqual([moved.statusCode, moved.headers['location']], [307, 'http://127.0.0.1:1/']);
      await moved.body.dump();
      assert.equal(await ask(), 'now');
      upstream.next(beforeBody(respond({ status: 413, body: 'too much' })));
      const raw = await rawAnswer(upstream.port, 'content-length: 1000\r\n');
      assert.match(raw, /^HTTP\/1.1 413 /);
    });
  });
});

/** Returns all bytes of an answer, until the upstream closes the connection. */
function rawAnswer(port: number, headers = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(`POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${headers}\r\n`);
    });
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => (text += chunk));
    socket.on('error', reject);
    socket.on('close', () => resolve(text));
  });
}
