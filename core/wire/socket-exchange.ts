import type { IncomingMessage } from 'node:http';
import type WebSocket from 'ws';
import { asCount, asObject, memberOf } from '../base/json-values';
import { parseJson } from '../base/parse-json';
import { findPlace } from '../http/json-members';
import { UpstreamExchange } from './upstream-exchange';

/** The events of an exchange that the owner of its socket handles. */
interface ExchangeEvents {
  readonly whenAnswered: () => void;
  readonly whenDone: (event: Buffer) => void;
  readonly whenOver: () => void;
}

/** Sends one `response.create`, and reads the events as the answer that a POST would have received. */
export class SocketExchange extends UpstreamExchange {
  isRequestSent = false;
  readonly #socket: WebSocket;
  readonly #idleMs: number;
  readonly #events: ExchangeEvents;
  /** The HTTP answer that rejected the socket. */
  #refusal: IncomingMessage | undefined;
  #idle: NodeJS.Timeout | undefined;
  #hasHead = false;

  constructor(socket: WebSocket, idleMs: number, events: ExchangeEvents) {
    super();
    this.#socket = socket;
    this.#idleMs = idleMs;
    this.#events = events;
  }

  send(frame: Buffer): void {
    if (this.isOver) return;
    // The callback ignores errors, because the socket itself reports a frame that it cannot send.
    this.#socket.send(frame, { binary: false }, () => undefined);
    this.isRequestSent = true;
  }

  noteFrame(data: Buffer, isBinary: boolean): void {
    if (this.isOver) return;
    if (isBinary) return void this.#breakOff(new SocketLost('the upstream sent a binary frame'));
    const type = typeOf(data);
    const refusal = this.#hasHead || type !== 'error' ? undefined : refusalIn(data);
    if (refusal !== undefined) return void this.#answerWith(refusal);
    if (!this.#hasHead) this.#beginStream();
    this.#watchIdle();
    this.arrived(toEvent(type, data));
    if (type === 'response.completed' || type === 'response.incomplete') this.#events.whenDone(data);
    if (type !== undefined && LAST_EVENTS.has(type)) this.end();
  }

  /** Handles an HTTP answer to the handshake. A status of success is a failure too, because no socket was opened. */
  noteRefusal(answer: IncomingMessage): void {
    const { statusCode: status = 0, headers } = answer;
    if (status < 300) return void this.#breakOff(new SocketLost('the upstream answered without a WebSocket'));
    this.#refusal = answer;
    this.gotHead({ status, headers });
    answer.on('data', (chunk: Buffer) => this.arrived(chunk));
    answer.once('end', () => this.end());
    answer.once('close', () => this.lost(new SocketLost('the upstream closed the connection while it sent its error')));
  }

  /** Fails the exchange, because the socket is closed or reports an error that closes it. */
  lost(error: Error): void {
    if (!this.isOver) this.fail(error);
  }

  protected override end(): void {
    super.end();
    this.#stop();
  }

  protected override fail(error: Error): void {
    super.fail(error);
    this.#stop();
  }

  protected pauseSender(): void {
    (this.#refusal ?? this.#socket).pause();
  }

  protected resumeSender(): void {
    (this.#refusal ?? this.#socket).resume();
  }

  /** Closes the socket, because the protocol has no other means to make an upstream stop. */
  protected abortSender(): void {
    this.#socket.terminate();
  }

  #stop(): void {
    clearTimeout(this.#idle);
    this.#events.whenOver();
  }

  #beginStream(): void {
    this.#hasHead = true;
    this.#events.whenAnswered();
    this.gotHead({ status: 200, headers: { 'content-type': 'text/event-stream' } });
  }

  #answerWith({ status, headers, body }: Refusal): void {
    this.gotHead({ status, headers });
    this.arrived(body);
    this.end();
  }

  #breakOff(error: Error): void {
    this.#socket.terminate();
    this.lost(error);
  }

  #watchIdle(): void {
    if (this.#idle !== undefined) return void this.#idle.refresh();
    this.#idle = setTimeout(() => {
      // While reading is paused, the client is slow. The silence is then not the upstream's fault.
      if (this.isPaused) this.#idle?.refresh();
      else this.#breakOff(new SilentUpstream());
    }, this.#idleMs);
  }
}

export class SocketLost extends Error {
  override readonly name = 'SocketLost';
}

class SilentUpstream extends Error {
  override readonly name = 'TimeoutError';
  override readonly message = 'the upstream sent no frame within the timeout';
}

/** The events that end an answer. */
export const LAST_EVENTS: ReadonlySet<string> = new Set([
  'response.completed',
  'response.failed',
  'response.incomplete',
  'error',
]);

/** Matches `type` at the beginning of an event. Most events begin with it, so they need no parsing. */
const TYPE_FIRST = /^\s*\{\s*"type"\s*:\s*"([\w.-]{1,100})"/;
const TYPE = /^[\w.-]{1,100}$/;
const LOOKED_AT_BYTES = 256;

/** Returns the type of an event; undefined if the data has no valid type. */
export function typeOf(data: Buffer): string | undefined {
  const first = TYPE_FIRST.exec(data.toString('latin1', 0, LOOKED_AT_BYTES))?.[1];
  if (first !== undefined) return first;
  const type = memberOf(parseJson(data.toString('utf8')), 'type');
  return typeof type === 'string' && TYPE.test(type) ? type : undefined;
}

/** Returns a server-sent event. Each line of the data gets its own `data:` field; in JSON, a line end is white space. */
function toEvent(type: string | undefined, data: Buffer): Buffer {
  const head = type === undefined ? 'data: ' : `event: ${type}\ndata: `;
  const isOneLine = !data.includes(0x0a) && !data.includes(0x0d);
  const text = isOneLine ? data : Buffer.from(data.toString('utf8').replaceAll(/\r\n|\r|\n/g, '\ndata: '));
  return Buffer.concat([Buffer.from(head), text, Buffer.from('\n\n')]);
}

export interface Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** The members of an error event's `headers` that say when to retry. */
const WAITS = ['retry-after', 'retry-after-ms', 'x-should-retry'];

/** Returns the HTTP answer that an error event with a status stands for; undefined for any other event. */
function refusalIn(data: Buffer): Refusal | undefined {
  const event = asObject(parseJson(data.toString('utf8'))) ?? {};
  const status = event['status'] ?? event['status_code'];
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 400 || status > 599) return undefined;
  const retryHeaders = Object.entries(asObject(event['headers']) ?? {}).flatMap(([name, value]) =>
    WAITS.includes(name.toLowerCase()) ? [[name.toLowerCase(), String(value)]] : [],
  );
  const headers = { ...Object.fromEntries(retryHeaders), 'content-type': 'application/json' };
  return { status, headers, body: Buffer.from(JSON.stringify({ error: event['error'] ?? event })) };
}

interface Tokens {
  readonly inputTokens: number | undefined;
  readonly outputTokens: number | undefined;
}

/**
 * Returns the id and the counts of a response from its last event. That event contains the whole answer, so it is not parsed as a
 * whole.
 */
export function answerIn(event: Buffer): { readonly id: string; readonly tokens: Tokens } | undefined {
  const id = valueAt(event, ['response', 'id']);
  if (typeof id !== 'string' || id === '' || id.length > MAX_ID_LENGTH) return undefined;
  const { input_tokens, output_tokens } = asObject(valueAt(event, ['response', 'usage'])) ?? {};
  return { id, tokens: { inputTokens: asCount(input_tokens), outputTokens: asCount(output_tokens) } };
}

/** The maximum length of a response's id. A longer text is no id. */
const MAX_ID_LENGTH = 1_000;

function valueAt(event: Buffer, path: readonly string[]): unknown {
  const place = findPlace([event], path);
  return place && parseJson(event.toString('utf8', place.valueStart, place.end));
}
