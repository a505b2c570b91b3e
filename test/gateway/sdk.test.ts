import Anthropic from '@anthropic-ai/sdk';
import { expect } from 'chai';
import OpenAI from 'openai';
import { MODEL } from '../support/gateway';
import { useGateway, useUpstream } from '../support/story';
import {
  chatAnswer,
  chatFailure,
  chatStream,
  messagesAnswer,
  messagesFailure,
  messagesStream,
} from '../support/upstream';

/** The SDKs retry twice. */
const RETRIED = { 'Idempotency-Key': 'order-1' };

describe('With only base URL and key changed, the official SDK', () => {
  const upstream = useUpstream();
  let key: string;
  let anthropic: Anthropic;
  let openai: OpenAI;

  const gateway = useGateway(() => ({ upstreams: { acme: { url: upstream.url } } }));

  before(async () => {
    ({ key } = await gateway.newCustomer('10'));
    anthropic = new Anthropic({ baseURL: gateway.url, apiKey: key, maxRetries: 0 });
    openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: key, maxRetries: 0 });
  });
  beforeEach(() => upstream.reset());

  const prompt = { model: MODEL, max_tokens: 50, messages: [{ role: 'user' as const, content: 'Hello' }] };

  describe('@anthropic-ai/sdk', () => {
    it('reads a stream, and its helper assembles the message with the cost', async () => {
      upstream.next(messagesStream({ texts: ['Hi ', 'there'], usage: { input: 12, output: 3 } }));
      const stream = anthropic.messages.stream(prompt);
      const texts: string[] = [];
      stream.on('text', (text) => texts.push(text));
      const message = await stream.finalMessage();
      expect(texts.join('')).to.equal('Hi there');
      expect(message.stop_reason).to.equal('end_turn');
      expect(message.usage.output_tokens).to.equal(3);
    });

    it('retries a failed call under the same Idempotency-Key, and is charged once', async () => {
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
    it('reads a stream whose last chunk has the usage with the cost', async () => {
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

    it('retries a failed call under the same Idempotency-Key, and is charged once', async () => {
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
