import { type ErrorCode, errorEnvelope, fail, type GatewayError } from '../../core/base/errors';
import { asObject, memberOf } from '../../core/base/json-values';
import { parseJson } from '../../core/base/parse-json';
import type { Protocol } from '../../core/catalog/protocols';
import type { SseEvent } from '../../core/catalog/upstream';
import type { AttemptOutcome } from '../../core/wire/dial-failure';
import type { AnsweredCall } from './headers';

/** Returns the event that ends a stream after the upstream failed or the gateway cut the stream off. */
export function brokenOff(
  { protocol, id, cutOffBy }: AnsweredCall,
  outcome: AttemptOutcome | undefined,
  relayed: RelayedEvents,
): Buffer {
  return errorEvent(protocol, cutOffBy ?? fail(codeOf(outcome), { message: BROKEN_OFF }), id, relayed);
}

const NONE: RelayedEvents = { first: undefined, last: undefined };

/** Returns an error as an event of the protocol. Chat clients read only the member `error`. */
export function errorEvent(
  protocol: Protocol,
  error: GatewayError,
  requestId: string,
  relayed: RelayedEvents = NONE,
): Buffer {
  const envelope = errorEnvelope(error, requestId);
  switch (protocol) {
    case 'chat':
    case 'embeddings':
      return Buffer.from(`data: ${JSON.stringify({ error: envelope.error })}\n\n`);
    case 'messages': {
      const inVendorsTerms = { ...envelope, error: { ...envelope.error, type: vendorTypeOf(error) } };
      return Buffer.from(`event: error\ndata: ${JSON.stringify(inVendorsTerms)}\n\n`);
    }
    case 'responses':
      return responseFailed(envelope, relayed);
  }
}

/** The vendor's error types for the gateway's 5xx statuses; all other statuses have `api_error`. */
const VENDOR_TYPES: Readonly<Record<number, string>> = { 503: 'overloaded_error', 504: 'timeout_error' };

/** Returns the vendor's type for an error. Agents may end their session at an unknown type, and retry automatically at a known one. */
function vendorTypeOf({ type, status }: GatewayError): string {
  return type === 'server_error' ? (VENDOR_TYPES[status] ?? 'api_error') : type;
}

/** The message for a stream that its upstream ended early. OpenCode recognizes the second sentence and retries automatically. */
const BROKEN_OFF = 'The upstream ended its answer early. Please retry your request.';

export function codeOf(outcome: AttemptOutcome | undefined): ErrorCode {
  return outcome === 'timeout' ? 'UPSTREAM_TIMEOUT' : 'ALL_PROVIDERS_FAILED';
}

type Envelope = ReturnType<typeof errorEnvelope>;

/** The first and the last event that the client received. */
export interface RelayedEvents {
  first: SseEvent | undefined;
  last: SseEvent | undefined;
}

/** The required members of a response, for a stream that ended before its first event. */
const BARE = {
  object: 'response',
  incomplete_details: null,
  instructions: null,
  metadata: null,
  model: '',
  parallel_tool_calls: true,
  temperature: null,
  tool_choice: 'auto',
  tools: [],
  top_p: null,
} as const;

/** Returns the event that ends a stream of the Responses protocol in failure: the response that began, with the gateway's error in it. */
function responseFailed({ request_id, error }: Envelope, { first, last }: RelayedEvents): Buffer {
  const begun = memberOf(dataOf(first), 'response');
  const bare = { ...BARE, id: `resp_${request_id}`, created_at: Math.floor(Date.now() / 1_000) };
  const response = { ...bare, ...asObject(begun), status: 'failed', error, output: [], usage: null };
  const before = memberOf(dataOf(last), 'sequence_number');
  const sequence_number = typeof before === 'number' ? before + 1 : 0;
  const data = JSON.stringify({ type: 'response.failed', sequence_number, request_id, response });
  return Buffer.from(`event: response.failed\ndata: ${data}\n\n`);
}

function dataOf(event: SseEvent | undefined): unknown {
  return event?.data === undefined ? undefined : parseJson(event.data);
}
