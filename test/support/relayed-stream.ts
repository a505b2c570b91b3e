import { Call, type Ending, type StreamAnswer } from '../../core/calls/call';
import { UpstreamHealth } from '../../core/health/health';
import type { ChunkReader } from '../../core/wire/chunk-reader';
import { EventReader } from '../../core/wire/event-reader';
import chat from '../../plugins/upstreams/chat';
import type { KeepAlive } from '../../policies/sse-relay/keep-alive';
import { sendStream } from '../../policies/sse-relay/stream-relay';
import { TokenUsageCounter } from '../../policies/token-metering';
import { sampleCandidate } from './catalog-samples';
import { SampleResponse, sampleGateway, sampleRequest } from './exchange';
import { sampleModelRequest } from './request-sample';

/** The bytes that an upstream has sent and will send. */
export class Sent implements ChunkReader {
  isCancelled = false;
  #hasEnded = false;
  readonly #waiting: Buffer[] = [];
  #wake: () => void = () => undefined;

  /** Lets the pieces arrive one after the other, in one read of the connection. */
  add(...pieces: readonly (string | Buffer)[]): void {
    for (const piece of pieces) {
      this.#waiting.push(Buffer.from(piece));
      this.#notify();
    }
  }

  end(): void {
    this.#hasEnded = true;
    this.#notify();
  }

  get isReady(): boolean {
    return this.#waiting.length > 0 || this.#hasEnded || this.isCancelled;
  }

  ready(): Promise<void> {
    return new Promise((resolve) => (this.isReady ? resolve() : this.whenReady(resolve)));
  }

  whenReady(wake: () => void): void {
    this.#wake = wake;
  }

  take(): Buffer | undefined {
    const chunk = this.#waiting.shift();
    if (chunk === undefined && !this.#hasEnded) throw new Error('cancelled');
    return chunk;
  }

  cancel(): void {
    this.isCancelled = true;
    this.#notify();
  }

  #notify(): void {
    const wake = this.#wake;
    this.#wake = () => undefined;
    wake();
  }
}

const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
export const said = (content: string): string => event({ choices: [{ index: 0, delta: { content } }] });
export const FINISH = event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
export const USAGE = event({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 7 } });

interface RelayOptions {
  readonly onClientAbort: 'settle' | 'drain';
  /** How long ago the head of the answer came. */
  readonly sinceMs?: number;
  readonly keepAlive?: KeepAlive | undefined;
  /** Resolves when the ledger answers. */
  readonly settled?: Promise<unknown>;
  /** The client wants the usage as the upstream sends it, and gets no cost. */
  readonly isUnchanged?: boolean;
}

/** A Chat stream that `sent` feeds, on its way to a client without a network. */
interface RelayedStream {
  readonly call: Call;
  readonly response: SampleResponse;
  readonly endings: readonly Ending[];
  /** Resolves at the end of the stream. */
  readonly done: Promise<void>;
}

/** Relays a Chat stream that begins with `head`. */
export function relayStream(sent: Sent, head: string, options: RelayOptions): RelayedStream {
  const { onClientAbort, sinceMs = 0, keepAlive, settled, isUnchanged = false } = options;
  const endings: Ending[] = [];
  const candidate = { ...sampleCandidate('acme'), adapter: chat };
  const members = new Map(isUnchanged ? [['stream_options', '{"include_usage":true}']] : []);
  const request = sampleModelRequest({ protocol: 'chat', stream: true, maxOutputTokens: 100, members });
  const meter = new TokenUsageCounter(request);
  meter.begin(candidate);
  const events = new EventReader('chat', 1);
  const answer: StreamAnswer = {
    kind: 'stream',
    candidate,
    status: 200,
    headers: {},
    head: events.read(Buffer.from(head)),
    events,
    chunks: sent,
    headAtMs: performance.now() - sinceMs,
  };
  const incoming = sampleRequest('POST', '/v1/chat/completions');
  const response = new SampleResponse(incoming);
  const reservation = {
    rid: 'r',
    heldE8: 1_000_000n,
    onClientAbort,
    settle: async (ending: Ending) => {
      endings.push(ending);
      await settled;
      return { chargedE8: 0n, billing: ending.billing };
    },
  };
  const answered = Object.assign(new Call(incoming, response), {
    key: { accountId: 'account' },
    request,
    meter,
    answer,
    reservation,
  });
  const gateway = sampleGateway({ health: new UpstreamHealth() });
  const settings = { annotateStreamCost: !isUnchanged, exposeAccountHeaders: false, keepAlive, gateway };
  const done = sendStream(answered, answer, response, { ...settings, usageWithinMs: 10_000 });
  return { call: answered, response, endings, done };
}
