import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { askAsSent, PATH, PROTOCOLS, type TestProtocol } from '../support/calls';
import { afterTexts, DIALECT, streamOf } from '../support/dialects';
import { setPolicy } from '../support/policy-settings';
import { useGateway, useUpstream } from '../support/story';
import type { messagesStream, Script } from '../support/upstream';

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

describe('Streams of silent upstreams', () => {
  const upstream = useUpstream();
  const gateway = useGateway(() => ({
    upstreams: { acme: { url: upstream.url } },
    configure: (config) => setPolicy(config, 'sse-relay', { keepAlive: `${AFTER_MS}ms`, annotateStreamCost: false }),
  }));
  let key: string;
  before(async () => {
    ({ key } = await gateway.newCustomer('10'));
  });
  beforeEach(() => upstream.reset());

  const streamed = (protocol: TestProtocol) => gateway.call(PATH[protocol], { key, body: askAsSent(protocol) });
  const signs = (text: string, protocol: TestProtocol) => text.split(DIALECT[protocol].sign).length - 1;

  describe('with `keepAlive`', () => {
    for (const protocol of PROTOCOLS) {
      it(`have keep-alive comments between the unchanged events of their upstream (${protocol})`, async () => {
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

      it(`have no keep-alive comment inside an event of a stream that arrives in two pieces (${protocol})`, async () => {
        const script = answering(protocol);
        upstream.next(pausedAt(script.text, script.text.indexOf('two ') + 2));
        const { text } = await streamed(protocol);
        expect(signs(text, protocol)).to.be.within(2, 4);
        expect(text.split(DIALECT[protocol].sign).join('')).to.equal(script.text);
        for (const event of script.events) expect(text).to.include(event);
      });

      // If the last event contains the stop reason, nothing can follow it.
      if (DIALECT[protocol].endTellsAll) continue;
      it(`have no keep-alive comments after the stop reason of the stream (${protocol})`, async () => {
        const script = answering(protocol);
        upstream.next(answering(protocol, silentBefore(script.events.length - 1)));
        expect((await streamed(protocol)).text).to.equal(script.text);
      });
    }
  });
});

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
