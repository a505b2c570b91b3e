import { errorEnvelope, type GatewayError } from '../base/errors';
import { parseJson } from '../base/parse-json';
import { errorHeaders } from '../http/http';
import { bytesOf, readAll } from '../wire/chunk-reader';
import { LAST_EVENTS } from '../wire/socket-exchange';
import { SseSplitter } from '../wire/sse';
import type { ExchangeHead, UpstreamExchange } from '../wire/upstream-exchange';

/** The destination of an answer's frames. */
export interface FrameWriter {
  /** Sends a frame; `isLast` marks the answer's last frame. Returns a promise that resolves when there is room for more; undefined if there is room now. */
  give(text: string, isLast: boolean): Promise<void> | undefined;
  giveSign(): void;
}

/** The maximum size of an unstreamed body, equal to the maximum size of an unstreamed answer of an upstream. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;

/**
 * Sends the answer to one call as frames. The data of each event is a frame, and a refusal is one error event. Returns the name of
 * the last event.
 * @throws if the answer breaks off
 */
export async function giveAnswer(exchange: UpstreamExchange, frames: FrameWriter): Promise<string | undefined> {
  const head = await exchange.head;
  const { status, headers } = head;
  if (String(headers['content-type']).startsWith('text/event-stream')) return giveEvents(exchange, frames);
  const body = await readAll(exchange, MAX_BODY_BYTES);
  await frames.give(status < 300 ? asLastEvent(body) : errorEventOf(head, body), true);
  return status < 300 ? 'response.completed' : 'error';
}

async function giveEvents(exchange: UpstreamExchange, frames: FrameWriter): Promise<string | undefined> {
  const splitter = new SseSplitter();
  let last: string | undefined;
  for await (const chunk of bytesOf(exchange)) {
    for (const { name = '', data } of splitter.push(chunk)) {
      if (data === undefined) {
        frames.giveSign();
        continue;
      }
      const isLast = LAST_EVENTS.has(name);
      if (isLast) last = name;
      await frames.give(data, isLast);
    }
  }
  return last;
}

/** Returns the event `response.completed` for a response that the upstream sent unstreamed. */
function asLastEvent(body: Buffer): string {
  return `{"type":"response.completed","response":${body.toString('utf8')}}`;
}

/** The HTTP headers of an error that are also copied into its error event, because they help a WebSocket client. */
const KNOWN = ['retry-after', 'retry-after-ms', 'x-should-retry', 'x-request-id'];

/** Returns the event for an error that belongs to no call. */
export function ownErrorEvent(error: GatewayError, requestId: string): string {
  return errorEvent({ status: error.status, headers: errorHeaders(error, requestId) }, errorEnvelope(error, requestId));
}

/** Returns the error event for a refusal over HTTP. The form is the vendor's: the status stands beside the error. */
function errorEventOf(head: ExchangeHead, body: Buffer): string {
  return errorEvent(head, parseJson(body.toString('utf8')));
}

function errorEvent({ status, headers }: ExchangeHead, body: unknown): string {
  const { request_id, error = noError(status) } = (typeof body === 'object' && body !== null ? body : {}) as Body;
  const known = KNOWN.flatMap((name) => (headers[name] === undefined ? [] : [[name, String(headers[name])]]));
  return JSON.stringify({
    type: 'error',
    ...inVendorsTerms(status, error),
    request_id: request_id ?? headers['x-request-id'],
    headers: Object.fromEntries(known),
  });
}

interface Body {
  readonly request_id?: unknown;
  readonly error?: unknown;
}

function noError(status: number): object {
  return {
    type: 'server_error',
    code: null,
    message: `The upstream answered ${status} without an error message.`,
    param: null,
  };
}

/** Uses the vendor's error code for a response that is not found. WebSocket clients know the code and then send the whole conversation again. */
function inVendorsTerms(status: number, error: unknown): { readonly status: number; readonly error: unknown } {
  const { code, param } = (error ?? {}) as { readonly code?: unknown; readonly param?: unknown };
  if (code !== 'KEPT_OBJECT_NOT_FOUND' || param !== 'previous_response_id') return { status, error };
  const known = { type: 'invalid_request_error', code: 'previous_response_not_found' };
  return { status: 400, error: { ...(error as object), ...known } };
}
