import type { SseEvent } from '../../core/catalog/upstream';
import type { errorEnvelope } from '../../core/errors';
import { parseJson } from '../../core/parse-json';

type Envelope = ReturnType<typeof errorEnvelope>;

/** The first and the last event that the client got. */
export interface RelayedEvents {
  first: SseEvent | undefined;
  last: SseEvent | undefined;
}

/** The members that a response must have, for a stream that had none. */
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

/** Returns the event that ends a stream of the Responses protocol in failure: the response that began, with our error in it. */
export function responseFailed({ request_id, error }: Envelope, { first, last }: RelayedEvents): Buffer {
  const begun = memberOf(dataOf(first), 'response');
  const bare = { ...BARE, id: `resp_${request_id}`, created_at: Math.floor(Date.now() / 1_000) };
  const response = { ...bare, ...objectOf(begun), status: 'failed', error, output: [], usage: null };
  const before = memberOf(dataOf(last), 'sequence_number');
  const sequence_number = typeof before === 'number' ? before + 1 : 0;
  const data = JSON.stringify({ type: 'response.failed', sequence_number, request_id, response });
  return Buffer.from(`event: response.failed\ndata: ${data}\n\n`);
}

function dataOf(event: SseEvent | undefined): unknown {
  return event?.data === undefined ? undefined : parseJson(event.data);
}

function memberOf(value: unknown, name: string): unknown {
  return objectOf(value)[name];
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
