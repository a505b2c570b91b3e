import Anthropic from '@anthropic-ai/sdk';
import { expect } from 'chai';
import OpenAI from 'openai';
import { request } from 'undici';
import { askIn, PATH, PROTOCOLS, type TestProtocol } from '../support/calls';
import { afterTexts, DIALECT, failureOf, streamOf } from '../support/dialects';
import { type Answered, MODEL, startGateway, type TestEndpoint, type TestGateway } from '../support/gateway';
import { setPolicy } from '../support/policy-settings';
import { until } from '../support/until';
import {
  chatFailure,
  chatStream,
  messagesAnswer,
  messagesErrorStream,
  messagesStream,
  neverAnswer,
  startUpstream,
  type TestUpstream,
} from '../support/upstream';

/** The part of an answer before the break. */
const BEGUN = { texts: ['one ', 'two ', 'three '], usage: { input: 1_000, output: 99 } };
const REST = { texts: ['three ', 'four.'], usage: { input: 1_020, output: 7 } };

describe('A stream that breaks after content', function () {
  this.timeout(60_000);
  let first: TestUpstream;
  let second: TestUpstream;
  let gateway: TestGateway;
  let key: string;
  let story = 0;

  before(async () => {
    [first, second] = [await startUpstream(), await startUpstream()];
    const upstreams: Record<string, TestEndpoint> = {};
    for (let each = 0; each < 120; each += 1) {
      const timeouts = { connect: '1s', headers: '1s', idle: '700ms' };
      const models = { [`${MODEL}-${each}`]: {} };
      const dearer = { [`${MODEL}-${each}`]: { price: { input: 6, output: 30 } } };
      upstreams[`first-${each}`] = { url: first.url, tier: 'official', timeouts, models };
      upstreams[`second-${each}`] = { url: second.url, timeouts, models: dearer, prefill: each % 2 === 0 };
    }
    gateway = await startGateway({
      upstreams,
      configure: (config) => {
        setPolicy(config, 'failover', { maxAttempts: 4, midStream: 'continue' }, 'quality');
        setPolicy(config, 'reserve-settle', { onClientAbort: 'drain' }, 'cost');
      },
    });
    ({ key } = await gateway.newCustomer('1000'));
  });
  after(async () => {
    await gateway?.stop();
    await first?.stop();
    await second?.stop();
  });
  beforeEach(() => {
    first.reset();
    second.reset();
    // In tests with an even number the second upstream can continue a stream, in odd ones no upstream can.
    story += story % 2 === 0 ? 2 : 1;
  });

  const model = () => `${MODEL}-${story}`;
  const call = (protocol: TestProtocol, more: Record<string, unknown> = {}, prefix = ''): Promise<Answered> =>
    gateway.call(`${prefix}${PATH[protocol]}`, {
      key,
      body: askIn(protocol, { model: model(), stream: true, ...more }),
    });
  const recordOf = (answer: Answered) => gateway.record(key, answer.headers['x-svc-request-id'] ?? '');

  function expectError(protocol: TestProtocol, answer: Answered, code: string) {
    expect(answer.status).to.equal(200);
    expect(answer.text).to.include('one ').and.to.include(code);
    expect(answer.text).not.to.match(DIALECT[protocol].end);
    const last = answer.text.trimEnd().split('\n\n').at(-1) ?? '';
    expect(last).to.match(DIALECT[protocol].errorEnd);
  }

  for (const protocol of PROTOCOLS) {
    const cuts = {
      'is reset': { script: { cutAfter: afterTexts(protocol, 3), cut: 'reset' }, code: 'ALL_PROVIDERS_FAILED' },
      'is closed': { script: { cutAfter: afterTexts(protocol, 3), cut: 'fin' }, code: 'ALL_PROVIDERS_FAILED' },
      'is closed inside a chunk': {
        script: { cutAfter: afterTexts(protocol, 3), cut: 'fin-mid-chunk' },
        code: 'ALL_PROVIDERS_FAILED',
      },
      'ends in order, but early': {
        script: { cutAfter: afterTexts(protocol, 3), cut: 'end' },
        code: 'ALL_PROVIDERS_FAILED',
      },
      stalls: { script: { cutAfter: afterTexts(protocol, 3), cut: 'stall' }, code: 'UPSTREAM_TIMEOUT' },
      'becomes malformed': {
        script: { malformedAt: { event: afterTexts(protocol, 3) } },
        code: 'ALL_PROVIDERS_FAILED',
      },
    } as const;

    const { canBeContinued } = DIALECT[protocol];
    for (const [what, { script }] of canBeContinued ? Object.entries(cuts) : []) {
      it(`is continued by another upstream as one stream with one bill if it ${what} (${protocol})`, async () => {
        first.always(streamOf(protocol, { ...BEGUN, ...script }));
        second.always(streamOf(protocol, REST));
        const answer = await call(protocol);
        expect(DIALECT[protocol].textOf(answer.text)).to.equal('one two three three four.');
        expectOneStream(protocol, answer.text);
        expect(answer.headers['x-routing-provider']).to.equal(`first-${story}`);
        // The 14 relayed bytes are 4 tokens at the first upstream's price; the 7 others have the second one's. Messages reports the
        // input at once, at the first price. Chat reports it at the end, and the second upstream's count includes those 4 tokens.
        const isMessages = protocol === 'messages';
        const cost = isMessages ? '0.00327000' : '0.00636600';
        const record = await recordOf(answer);
        expect(record).to.include({
          billing: 'estimated',
          inputTokens: isMessages ? 1_000 : 1_016,
          outputTokens: 11,
          cost,
          attempts: 2,
          fallback: true,
          upstream: `second-${story}`,
          status: 200,
          errorCode: null,
        });
        expect(answer.text).to.include(`"cost":${cost}`);
      });
    }

    for (const [what, { script, code }] of Object.entries(cuts)) {
      it(`costs nothing and ends with the error event if it ${what} and no upstream can continue (${protocol})`, async () => {
        story += 1;
        first.always(streamOf(protocol, { ...BEGUN, ...script }));
        const answer = await call(protocol);
        expectError(protocol, answer, code);
        expect(await recordOf(answer)).to.include({
          billing: 'released',
          cost: '0.00000000',
          errorCode: code,
          status: 200,
        });
        expect(second.calls).to.have.length(0);
        first.always(streamOf(protocol));
        expect((await call(protocol)).text, 'healthy afterwards').to.match(DIALECT[protocol].end);
      });
    }

    it(`with onClientAbort: drain costs a client that disconnects what the upstream reports (${protocol})`, async () => {
      first.always(
        streamOf(protocol, { texts: Array.from({ length: 60 }, () => 'word '), usage: BEGUN.usage, delayMs: 15 }),
      );
      second.always(failureOf[protocol](500));
      const cheap = await leaveAfterContent(protocol, '/cost');
      const seen = await first.call(1);
      await seen.ended;
      expect(seen.closedEarly).to.equal(false);
      const record = await gateway.record(key, cheap);
      expect(record).to.include({ billing: 'actual', inputTokens: 1_000, outputTokens: 99, status: 200 });
    });
    if (!canBeContinued) continue;

    it(`is continued with the text so far as prefill, and with what is left of the limit (${protocol})`, async () => {
      first.always(streamOf(protocol, { ...BEGUN, cutAfter: afterTexts(protocol, 3), cut: 'reset' }));
      second.always(streamOf(protocol, REST));
      await call(protocol);
      const asked = second.calls[0]?.json as { messages: unknown[]; max_tokens: number } | undefined;
      expect(asked?.messages).to.deep.equal([
        { role: 'user', content: 'Hello' },
        { role: 'assistant', content: 'one two three' },
      ]);
      expect(asked?.max_tokens).to.equal(200 - 4);
    });

    it(`ends with the error event if the continuing upstream refuses the prefill (${protocol})`, async () => {
      first.always(streamOf(protocol, { ...BEGUN, cutAfter: afterTexts(protocol, 3), cut: 'reset' }));
      second.always(failureOf[protocol](400, { type: 'invalid_request_error', message: 'no prefill here' }));
      const answer = await call(protocol);
      expectError(protocol, answer, 'ALL_PROVIDERS_FAILED');
      expect(answer.text).not.to.include('no prefill here');
      expect(second.calls).to.have.length(1);
      expect(await recordOf(answer)).to.include({ billing: 'released', cost: '0.00000000' });
    });

    it(`is not continued in the middle of a tool call (${protocol})`, async () => {
      const toolCalls = [{ name: 'look_up', input: { of: 'a long enough argument' } }];
      first.always(streamOf(protocol, { texts: ['one '], toolCalls, cutAfter: afterTexts(protocol, 3), cut: 'reset' }));
      expectError(protocol, await call(protocol), 'ALL_PROVIDERS_FAILED');
      expect(second.calls).to.have.length(0);
    });

    it(`is not continued if the output limit is reached (${protocol})`, async () => {
      first.always(streamOf(protocol, { ...BEGUN, cutAfter: afterTexts(protocol, 3), cut: 'reset' }));
      expectError(protocol, await call(protocol, { max_tokens: 4 }), 'ALL_PROVIDERS_FAILED');
      expect(second.calls).to.have.length(0);
    });
  }

  it('raises the hold of a call only if another upstream may continue it', async () => {
    first.always(neverAnswer());
    second.always(chatFailure(400));
    const held = async (prefix: string): Promise<number> => {
      // Without a limit each upstream could answer the same amount.
      const asked = call('chat', { max_tokens: undefined }, prefix);
      const { heldUsd } = await until('it is held for', async () => {
        const balance = await gateway.balance(key);
        return Number(balance.heldUsd) > 0 ? balance : undefined;
      });
      await asked;
      await until('it is given back', async () => Number((await gateway.balance(key)).heldUsd) === 0);
      return Number(heldUsd);
    };
    const twice = await held('');
    expect(await held('/cost')).to.be.within(1_024 * 30e-6, twice - 1_024 * 30e-6 + 1e-8);
  });

  it('with an error event hides that event if another upstream continues, and relays it if none can', async () => {
    const error = messagesErrorStream({ afterEvents: 4 });
    first.always(error);
    second.always(messagesStream(REST));
    const answer = await call('messages');
    expect(answer.text).not.to.include('overloaded_error');
    expectOneStream('messages', answer.text);
    story += 1;
    const told = await call('messages');
    expect(told.text).to.equal(error.text);
  });

  it('is read by the SDKs of both protocols as one answer if it is continued', async () => {
    first.always(messagesStream({ ...BEGUN, cutAfter: 6, cut: 'reset' }));
    second.always(messagesStream(REST));
    const message = await new Anthropic({ baseURL: gateway.url, apiKey: key, maxRetries: 0 }).messages
      .stream({ model: model(), max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] })
      .finalMessage();
    expect(message.content).to.have.length(1);
    expect(message.content[0]).to.include({ type: 'text', text: 'one two three three four.' });
    expect(message.usage).to.include({ input_tokens: 1_000, output_tokens: 11 });
    story += 2;
    first.always(chatStream({ ...BEGUN, cutAfter: 4, cut: 'reset' }));
    second.always(chatStream({ ...REST, withUsage: true, id: 'another', model: 'other' }));
    const completion = await new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: key, maxRetries: 0 }).chat.completions
      .stream({
        model: model(),
        messages: [{ role: 'user', content: 'Hello' }],
        stream_options: { include_usage: true },
      })
      .finalChatCompletion();
    expect(completion.choices[0]?.message.content).to.equal('one two three three four.');
    expect(completion.usage).to.include({ prompt_tokens: 1_016, completion_tokens: 11, total_tokens: 1_027 });
  });

  it('differs from a broken unstreamed answer, after which the next candidate answers the call from the start', async () => {
    first.always(messagesAnswer({}, { cutBody: 20 }));
    second.always(messagesAnswer({ text: 'whole' }));
    const answer = await call('messages', { stream: false });
    expect(answer.status).to.equal(200);
    expect(answer.text).to.include('whole');
    expect(answer.headers['x-routing-attempts']).to.equal('2');
    expect(first.calls).to.have.length(1);
    expect(String(second.calls[0]?.body)).to.include('Hello');
  });

  /** Reads the first content, disconnects and returns the request id. */
  async function leaveAfterContent(protocol: TestProtocol, prefix: string): Promise<string> {
    const leaving = new AbortController();
    const answer = await request(`${gateway.url}${prefix}${PATH[protocol]}`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify(askIn(protocol, { model: model(), stream: true })),
      signal: leaving.signal,
    });
    answer.body.on('error', () => undefined);
    let text = '';
    answer.body.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    await until('some content has come', () => text.includes('word'));
    leaving.abort();
    return String(answer.headers['x-svc-request-id']);
  }
});

/** Returns the parsed data of the events. */
function eventsOf(text: string): Record<string, unknown>[] {
  return [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, data]) => JSON.parse(data ?? '') as Record<string, unknown>);
}

interface Shape {
  readonly type?: string;
  readonly index?: number;
  readonly id?: string;
  readonly delta?: { readonly text?: string; readonly stop_reason?: string };
  readonly choices?: readonly {
    readonly delta: { role?: string; content?: string };
    readonly finish_reason?: string;
  }[];
  readonly usage?: unknown;
}

/** Expects one beginning, one stop, one usage and one end, and consistent ids and block numbers. */
function expectOneStream(protocol: TestProtocol, text: string) {
  const events = eventsOf(text) as Shape[];
  expect(text).not.to.include('"error"');
  if (protocol === 'chat') {
    expect(text.trimEnd().endsWith('data: [DONE]')).to.equal(true);
    expect(new Set(events.map(({ id }) => id)).size).to.equal(1);
    const choices = events.flatMap((event) => event.choices ?? []);
    expect(choices.filter(({ delta }) => delta.role !== undefined)).to.have.length(1);
    expect(choices.filter(({ finish_reason: reason }) => typeof reason === 'string')).to.have.length(1);
    expect(events.filter(({ usage }) => typeof usage === 'object' && usage !== null)).to.have.length(1);
    // The clients did not ask for the usage, so it must be in a chunk with a choice.
    expect(choices, 'a choice in every chunk').to.have.length(events.length);
    return;
  }
  const kinds = events.map(({ type }) => type).filter((type) => type !== 'ping' && type !== 'content_block_delta');
  expect(kinds).to.deep.equal([
    'message_start',
    'content_block_start',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ]);
  expect(new Set(events.flatMap(({ index }) => (index === undefined ? [] : [index])))).to.deep.equal(new Set([0]));
}
