import { errorEnvelope, type GatewayError } from '../errors';
import { errorHeaders } from '../http/http';
import { parseJson } from '../parse-json';
import type { ExchangeHead } from '../wire/upstream-exchange';

/** The headers of an answer that also help a client that gets an event instead. */
const KNOWN = ['retry-after', 'retry-after-ms', 'x-should-retry', 'x-request-id'];

/** Returns the event for an error that belongs to no call. */
export function ownErrorEvent(error: GatewayError, requestId: string): string {
  return errorEvent({ status: error.status, headers: errorHeaders(error, requestId) }, errorEnvelope(error, requestId));
}

/** Returns the event for an HTTP refusal: the vendor's form, with the status beside the error. */
export function errorEventOf(head: ExchangeHead, body: Buffer): string {
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

/** Uses the vendor's code for a lost response, because WebSocket clients know it: they then send the whole conversation again. */
function inVendorsTerms(status: number, error: unknown): { readonly status: number; readonly error: unknown } {
  const { code, param } = (error ?? {}) as { readonly code?: unknown; readonly param?: unknown };
  if (code !== 'KEPT_OBJECT_NOT_FOUND' || param !== 'previous_response_id') return { status, error };
  const known = { type: 'invalid_request_error', code: 'previous_response_not_found' };
  return { status: 400, error: { ...(error as object), ...known } };
}
