import { setTimeout as sleep } from 'node:timers/promises';
import Anthropic from '@anthropic-ai/sdk';
import { expect } from 'chai';
import OpenAI from 'openai';
import { askAsSent, PATH, PROTOCOLS, type TestProtocol } from '../support/calls';
import { afterTexts, DIALECT, streamOf } from '../support/dialects';
import { type Configured, MODEL, startGateway, type TestGateway } from '../support/gateway';
import { setPolicy } from '../support/policy-settings';
import { type messagesStream, type Script, startUpstream, type TestUpstream } from '../support/upstream';

const AFTER_MS = 200;
const SILENCE_MS = 700;

const SAID = { texts: ['one ', 'two '], usage: { input: 12, output: 3 } };

function answering(protocol: TestProtocol, more: Parameters<typeof messagesStream>[0] = {}) {
  return streamOf(protocol, { ...SAID, ...more });
}

/** The index of the event with `two `. */
const second = (protocol: TestProtocol) => afterTexts(protocol, 1);

function silentBefore(event: number) {
  return {
    waitFor: {
      before: event,
      get until() {
        return sleep(SILENCE_MS);
      },
    },
  };
}

describe('Streams of silent upstreams', function () {
  this.timeout(60_000);
  let upstream: TestUpstream;
  let gateway: TestGateway;
  let key: string;

  async function start(keepAlive: string): Promise<void> {
    const configure = (config: Configured) => setPolicy(config, 'sse-relay', { keepAlive, annotateStreamCost: false });
    gateway = await startGateway({ upstreams: { acme: { url: upstream.url } }, configure });
    ({ key } = await gateway.newCustomer('10'));
  }

  before(async () => {
    upstream = await startUpstream();
  });
  after(() => upstream?.stop());
  beforeEach(() => upstream.reset());

  const streamed = (protocol: TestProtocol) => gateway.call(PATH[protocol], { key, body: askAsSent(protocol) });
  const signs = (text: string, protocol: TestProtocol) => text.split(DIALECT[protocol].sign).length - 1;

  describe('with `keepAlive`', () => {
    before(() => start(`${AFTER_MS}ms`));
    after(() => gateway?.stop());

    for (const protocol of PROTOCOLS) {
      it(`have keep-alive comments between the unchanged events of the upstream (${protocol})`, async () => {
        const script = answering(protocol, silentBefore(second(protocol)));
        upstream.next(script);
        const { text, headers } = await streamed(protocol);
        expect(signs(text, protocol)).to.be.within(2, 4);
        const [before, ...others] = text.split(DIALECT[protocol].sign);
        expect(before).to.include('one ').and.not.include('two ');
        expect(before + others.join('')).to.equal(script.text);
        const record = await gateway.record(key, headers['x-svc-request-id'] ?? '');
        expect(record).to.include({ billing: 'actual', inputTokens: 12, outputTokens: 3, errorCode: null });
      });

      it(`have no keep-alive comments while the upstream is not silent (${protocol})`, async () => {
        const script = answering(protocol, { delayMs: AFTER_MS / 4 });
        upstream.next(script);
        expect((await streamed(protocol)).text).to.equal(script.text);
      });

      it(`have no keep-alive comment inside an event that arrives in two pieces (${protocol})`, async () => {
        const script = answering(protocol);
        upstream.next(pausedAt(script.text, script.text.indexOf('two ') + 2));
        const { text } = await streamed(protocol);
        expect(signs(text, protocol)).to.be.within(2, 4);
        expect(text.split(DIALECT[protocol].sign).join('')).to.equal(script.text);
        for (const event of script.events) expect(text).to.include(event);
      });

      it(`have keep-alive comments while an event arrives byte by byte (${protocol})`, async () => {
        const script = answering(protocol);
        upstream.next(pausedAt(script.text, ...[2, 3, 4, 5, 6, 7].map((more) => script.text.indexOf('two ') + more)));
        const { text } = await streamed(protocol);
        expect(signs(text, protocol)).to.be.greaterThan(2);
        expect(text.split(DIALECT[protocol].sign).join('')).to.equal(script.text);
      });

      // If the last event contains the stop reason, nothing can follow it.
      if (DIALECT[protocol].endTellsAll) continue;
      it(`have no keep-alive comments after their stop reason (${protocol})`, async () => {
        const script = answering(protocol);
        upstream.next(answering(protocol, silentBefore(script.events.length - 1)));
        expect((await streamed(protocol)).text).to.equal(script.text);
      });
    }

    it('are read correctly by the SDK of the Messages protocol', async () => {
      upstream.next(answering('messages', silentBefore(second('messages'))));
      const anthropic = new Anthropic({ baseURL: gateway.url, apiKey: key, maxRetries: 0 });
      const stream = anthropic.messages.stream({ model: MODEL, max_tokens: 50, messages: HELLO });
      const { content, usage } = await stream.finalMessage();
      expect(content[0]).to.include({ type: 'text', text: 'one two ' });
      expect(usage.output_tokens).to.equal(3);
    });

    it('are read correctly by the SDK of the Chat protocol', async () => {
      upstream.next(answering('chat', silentBefore(second('chat'))));
      const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: key, maxRetries: 0 });
      let said = '';
      const stream = await openai.chat.completions.create({ model: MODEL, stream: true, messages: HELLO });
      for await (const { choices } of stream) said += choices[0]?.delta.content ?? '';
      expect(said).to.equal('one two ');
    });
  });

  describe('with `keepAlive: off`', () => {
    before(() => start('off'));
    after(() => gateway?.stop());

    for (const protocol of PROTOCOLS) {
      it(`are relayed unchanged (${protocol})`, async () => {
        const script = answering(protocol, silentBefore(second(protocol)));
        upstream.next(script);
        expect((await streamed(protocol)).text).to.equal(script.text);
      });
    }
  });
});

const HELLO = [{ role: 'user' as const, content: 'Hello' }];

/** Sends a stream that pauses at each of these positions. */
function pausedAt(text: string, ...places: readonly number[]): Script {
  return {
    answer: async ({ response }) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      let from = 0;
      for (const place of places) {
        response.write(text.slice(from, place));
        from = place;
        await sleep(places.length === 1 ? SILENCE_MS : AFTER_MS * 0.75);
      }
      response.end(text.slice(from));
    },
  };
}
