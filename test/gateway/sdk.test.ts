import Anthropic from '@anthropic-ai/sdk';
import { expect } from 'chai';
import OpenAI from 'openai';
import { MODEL, startGateway, type TestGateway } from '../support/gateway';
import {
  chatAnswer,
  chatFailure,
  chatStream,
  messagesAnswer,
  messagesFailure,
  messagesStream,
  startUpstream,
  type TestUpstream,
} from '../support/upstream';

/** The SDKs retry twice. */
const RETRIED = { 'Idempotency-Key': 'order-1' };

describe('With only base URL and key changed, the official SDK', function () {
  this.timeout(60_000);
  let upstream: TestUpstream;
  let gateway: TestGateway;
  let key: string;
  let anthropic: Anthropic;
  let openai: OpenAI;

  before(async () => {
    upstream = await startUpstream();
    gateway = await startGateway({ upstreams: { acme: { url: upstream.url } } });
    ({ key } = await gateway.newCustomer('10'));
    anthropic = new Anthropic({ baseURL: gateway.url, apiKey: key, maxRetries: 0 });
    openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: key, maxRetries: 0 });
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });
  beforeEach(() => upstream.reset());

  const prompt = { model: MODEL, max_tokens: 50, messages: [{ role: 'user' as const, content: 'Hello' }] };

  /** Expects the charge to be what the upstream reports, although the client has disconnected. */
  const expectReadToItsEnd = async ({ headers }: { headers: Headers }) => {
    const record = await gateway.record(key, headers.get('x-svc-request-id') ?? '');
    expect(record).to.include({ billing: 'actual', status: 200 });
  };

  describe('@anthropic-ai/sdk', () => {
    it('streams, and its helper assembles the message with its cost', async () => {
      upstream.next(messagesStream({ texts: ['Hi ', 'there'], usage: { input: 12, output: 3 } }));
      const stream = anthropic.messages.stream(prompt);
      const texts: string[] = [];
      stream.on('text', (text) => texts.push(text));
      const message = await stream.finalMessage();
      expect(texts.join('')).to.equal('Hi there');
      expect(message.stop_reason).to.equal('end_turn');
      expect(message.usage.output_tokens).to.equal(3);
    });

    it('may disconnect in the middle of a stream, and the call is charged as reported', async () => {
      upstream.next(messagesStream({ texts: Array.from({ length: 200 }, () => 'word '), delayMs: 5 }));
      const call = anthropic.messages.create({ ...prompt, stream: true }).withResponse();
      const { data: stream, response } = await call;
      for await (const event of stream) if (event.type === 'content_block_delta') break;
      await expectReadToItsEnd(response);
    });

    it('repeats a failed call under one Idempotency-Key, and is charged once', async () => {
      const { key: own } = await gateway.newCustomer('10');
      upstream.next(messagesFailure(500), messagesFailure(500));
      upstream.always(messagesAnswer({ usage: { input: 1_000, output: 200 } }));
      await new Anthropic({ baseURL: gateway.url, apiKey: own }).messages.create(prompt, { headers: RETRIED });
      expect(upstream.calls).to.have.length(3);
      expect((await gateway.balance(own)).key['spentUsd']).to.equal('0.00600000');
    });

    it('throws its own exceptions for errors of the gateway and of an upstream', async () => {
      const stranger = new Anthropic({ baseURL: gateway.url, apiKey: 'sk-svc-nobody', maxRetries: 0 });
      expect(await caught(stranger.messages.create(prompt))).to.be.instanceOf(Anthropic.AuthenticationError);
      expect(await caught(anthropic.messages.create({ ...prompt, model: 'nobody' }))).to.be.instanceOf(
        Anthropic.BadRequestError,
      );
      upstream.always(messagesFailure(422, { type: 'invalid_request_error', message: 'no' }));
      expect(await caught(anthropic.messages.create(prompt))).to.be.instanceOf(Anthropic.UnprocessableEntityError);
      upstream.always(messagesFailure(429, { type: 'rate_limit_error' }));
      const limited = await caught(anthropic.messages.create(prompt));
      expect(limited).to.be.instanceOf(Anthropic.RateLimitError);
      expect(limited).to.have.property('requestID').that.matches(/^req_/);
      upstream.always(messagesFailure(500));
      expect(await caught(anthropic.messages.create(prompt))).to.be.instanceOf(Anthropic.InternalServerError);
    });
  });

  describe('openai', () => {
    it('streams, and the last chunk has the usage with the cost', async () => {
      upstream.next(chatStream({ texts: ['Hi ', 'there'], usage: { input: 12, output: 3 } }));
      const stream = await openai.chat.completions.create({ ...prompt, stream: true });
      const chunks = [];
      for await (const chunk of stream) chunks.push(chunk);
      expect(chunks.map(({ choices }) => choices.length)).to.deep.equal([1, 1, 1, 1]);
      expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).to.equal('Hi there');
      expect(chunks.at(-1)?.choices[0]?.finish_reason).to.equal('stop');
      // The cost is 12 × 3 + 3 × 15 USD per million.
      expect(chunks.at(-1)?.usage).to.include({ completion_tokens: 3, cost: 0.000081 });
      expect(upstream.calls[0]?.json).to.have.nested.property('stream_options.include_usage', true);
    });

    it('streams, and the usage is in a separate chunk with `include_usage: true`', async () => {
      upstream.next(chatStream({ texts: ['Hi ', 'there'], usage: { input: 12, output: 3 } }));
      const stream = openai.chat.completions.stream({ ...prompt, stream_options: { include_usage: true } });
      const chunks = [];
      for await (const chunk of stream) chunks.push(chunk);
      expect(chunks.map(({ choices }) => choices.length)).to.deep.equal([1, 1, 1, 1, 0]);
      expect(chunks.at(-1)?.usage).to.include({ completion_tokens: 3, cost: 0.000081 });
      expect(await stream.totalUsage()).to.include({ prompt_tokens: 12, completion_tokens: 3 });
      expect(await stream.finalContent()).to.equal('Hi there');
    });

    it('reads usage and finish reason from the same chunk with its helper', async () => {
      upstream.next(chatStream({ texts: ['Hi ', 'there'], usage: { input: 12, output: 3 } }));
      const stream = openai.chat.completions.stream(prompt);
      const { choices, usage } = await stream.finalChatCompletion();
      expect(choices[0]).to.have.property('finish_reason', 'stop');
      expect(choices[0]?.message.content).to.equal('Hi there');
      expect(usage).to.include({ prompt_tokens: 12, completion_tokens: 3 });
    });

    it('may disconnect in the middle of a stream, and the call is charged as reported', async () => {
      upstream.next(chatStream({ texts: Array.from({ length: 200 }, () => 'word '), delayMs: 5, withUsage: true }));
      const call = openai.chat.completions.create({ ...prompt, stream: true }).withResponse();
      const { data: stream, response } = await call;
      for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
      await expectReadToItsEnd(response);
    });

    it('repeats a failed call under one Idempotency-Key, and is charged once', async () => {
      const { key: own } = await gateway.newCustomer('10');
      upstream.next(chatFailure(500), chatFailure(500));
      upstream.always(chatAnswer({ usage: { input: 1_000, output: 200 } }));
      await new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: own }).chat.completions.create(prompt, {
        headers: RETRIED,
      });
      expect(upstream.calls).to.have.length(3);
      expect((await gateway.balance(own)).key['spentUsd']).to.equal('0.00600000');
    });

    it('throws its own exceptions for errors of the gateway and of an upstream', async () => {
      const stranger = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'sk-svc-nobody', maxRetries: 0 });
      expect(await caught(stranger.chat.completions.create(prompt))).to.be.instanceOf(OpenAI.AuthenticationError);
      const unknown = await caught(openai.chat.completions.create({ ...prompt, model: 'nobody' }));
      expect(unknown).to.be.instanceOf(OpenAI.BadRequestError);
      expect(unknown).to.include({ code: 'MODEL_NOT_PRICED', param: 'model' });
      upstream.always(chatFailure(429));
      expect(await caught(openai.chat.completions.create(prompt))).to.be.instanceOf(OpenAI.RateLimitError);
      upstream.always(chatFailure(500));
      expect(await caught(openai.chat.completions.create(prompt))).to.be.instanceOf(OpenAI.InternalServerError);
    });

    it('lists the models', async () => {
      const models = await openai.models.list();
      expect(models.data.map(({ id }) => id)).to.deep.equal([MODEL]);
      expect((await openai.models.retrieve(MODEL)).id).to.equal(MODEL);
    });
  });
});

async function caught(promise: PromiseLike<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('expected a rejection');
}
