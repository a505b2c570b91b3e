import { expect } from 'chai';
import { Call, type Ending, type StreamAnswer } from '../../../core/call';
import type { ChunkReader } from '../../../core/chunk-reader';
import { EventReader } from '../../../core/event-reader';
import { UpstreamHealth } from '../../../core/upstream-health';
import chat from '../../../plugins/upstreams/chat';
import { sendStream } from '../../../policies/sse-relay/stream';
import { TokenMeter } from '../../../policies/token-metering/token-meter';
import { sampleCandidate } from '../../support/catalog-samples';
import { SampleResponse, sampleGateway, sampleRequest } from '../../support/exchange';
import { sampleModelRequest } from '../../support/request-sample';

/** What an upstream has sent, and what it is still to send. */
class Sent implements ChunkReader {
  isCancelled = false;
  #hasEnded = false;
  readonly #waiting: Buffer[] = [];
  #wake: () => void = () => undefined;

  add(...texts: readonly string[]): void {
    this.#waiting.push(...texts.map((text) => Buffer.from(text)));
    this.#wake();
  }

  end(): void {
    this.#hasEnded = true;
    this.#wake();
  }

  get isReady(): boolean {
    return this.#waiting.length > 0 || this.#hasEnded || this.isCancelled;
  }

  async ready(): Promise<void> {
    while (!this.isReady) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  take(): Buffer | undefined {
    const chunk = this.#waiting.shift();
    if (chunk === undefined && !this.#hasEnded) throw new Error('cancelled');
    return chunk;
  }

  cancel(): void {
    this.isCancelled = true;
    this.#wake();
  }
}

const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
const said = (content: string) => event({ choices: [{ index: 0, delta: { content } }] });
const FINISH = event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
const USAGE = event({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 7 } });

describe('A client that leaves a stream', () => {
  let sent: Sent;
  let response: SampleResponse;
  let endings: Ending[];

  /** Relays a stream that begins with `head`; resolves when it has ended. */
  function relay(head: string, onClientAbort: 'settle' | 'drain'): Promise<void> {
    const candidate = { ...sampleCandidate('acme'), adapter: chat };
    const request = sampleModelRequest({ protocol: 'chat', stream: true });
    const meter = new TokenMeter(request);
    meter.begin(candidate);
    const events = new EventReader(chat, 1);
    const answer: StreamAnswer = {
      ...{ kind: 'stream', candidate, status: 200, headers: {}, head: events.read(Buffer.from(head)) },
      ...{ events, chunks: sent, goOn: undefined },
    };
    const incoming = sampleRequest('POST', '/v1/chat/completions');
    response = new SampleResponse(incoming);
    const reservation = {
      ...{ rid: 'r', heldE8: 1_000_000n, onClientAbort },
      settle: async (ending: Ending) => {
        endings.push(ending);
        return { chargedE8: 0n, billing: ending.billing };
      },
    };
    const call = Object.assign(new Call(incoming, response), { request, meter, answer, reservation });
    const gateway = sampleGateway({ health: new UpstreamHealth() });
    return sendStream(call, answer, response, { annotateStreamCost: true, exposeAccountHeaders: false, gateway });
  }

  beforeEach(() => {
    sent = new Sent();
    endings = [];
  });

  it('does not pay for what had come and was not relayed yet', async () => {
    const done = relay(said('1234'), 'settle');
    sent.add(said('five tokens and more'), FINISH, USAGE);
    response.clientLeaves();
    await done;
    expect(endings).to.have.length(1);
    expect(endings[0]).to.include({ billing: 'partial' });
    expect(endings[0]).to.have.nested.property('usage.outputTokens', 1);
    expect(sent.isCancelled).to.equal(true);
  });

  it('after its end, where streams are drained, leaves nothing running', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length;
    const done = relay(said('1234'), 'drain');
    // What was given to the connection is not taken any more.
    response.end = () => response;
    sent.end();
    await done;
    const before = timers();
    response.clientLeaves();
    expect(timers()).to.equal(before);
  });

  it('after its stop reason, where streams are drained, pays what the upstream says it was', async () => {
    const done = relay(said('1234') + FINISH, 'drain');
    response.clientLeaves();
    expect(sent.isCancelled, 'the upstream is read on').to.equal(false);
    sent.add(USAGE);
    sent.end();
    await done;
    expect(endings).to.have.length(1);
    expect(endings[0]).to.have.nested.property('usage.outputTokens', 7);
    expect(endings[0]).to.have.nested.property('usage.inputTokens', 10);
  });
});
