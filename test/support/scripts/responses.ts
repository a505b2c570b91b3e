import { sseEvent } from '../../../demo/dialects/answer';
import { responsesBody, responsesEvents } from '../../../demo/dialects/responses';
import { answerOf, type Said, withRawUsage } from './answer';
import { type ChatFailure, chatFailure } from './chat';
import { type Response, respond } from './respond';
import type { Script } from './script';
import { type StreamOptions, type StreamScript, stream } from './stream';

/** The number of events before the first content: created, in_progress, output_item.added, content_part.added. */
const RESPONSES_PREAMBLE = 4;

/** The content of an answer, with the vendor's tools that ran before it, and members of the response such as its tier. */
interface SaidInResponses extends Said {
  /** The number of searches that the vendor made. */
  readonly searches?: number;
  readonly response?: object;
}

export function responsesAnswer(said: SaidInResponses = {}, response: Omit<Response, 'body'> = {}): Script {
  const body = withRawUsage(responsesBody(answerOf(said, 'resp')), said.rawUsage);
  return respond({ ...response, body: withSearches({ ...body, ...said.response }, said.searches) });
}

export function responsesStream(said: SaidInResponses & StreamOptions = {}): StreamScript {
  const events = responsesEvents(answerOf(said, 'resp'));
  const [created = '', begun = '', ...others] = events.map((event) => edited(event, said));
  const searches = searchItems(said.searches).flatMap((item, output_index) => [
    sseEvent({ type: 'response.output_item.added', output_index, item }, 'response.output_item.added'),
    sseEvent({ type: 'response.output_item.done', output_index, item }, 'response.output_item.done'),
  ]);
  return stream([created, begun, ...searches, ...others], RESPONSES_PREAMBLE, said);
}

function searchItems(searches = 0): readonly object[] {
  return Array.from({ length: searches }, (_, at) => ({
    id: `ws_${at}`,
    type: 'web_search_call',
    status: 'completed',
    action: { type: 'search', query: 'weather' },
  }));
}

function withSearches(response: Record<string, unknown>, searches: number | undefined): Record<string, unknown> {
  const output = response['output'] as readonly object[];
  // A response at its begin has no output.
  return output.length === 0 ? response : { ...response, output: [...searchItems(searches), ...output] };
}

/** Makes an error answer, which has the form of the Chat protocol. */
export const responsesFailure: typeof chatFailure = chatFailure;

/** Makes a stream that ends with an error event or `response.failed`: as its first event, or after this many events of a good answer. */
export function responsesErrorStream(
  {
    type = 'server_error',
    code = null,
    message = 'Overloaded',
    afterEvents = 0,
    isFailed = false,
  }: ChatFailure & { readonly afterEvents?: number; readonly isFailed?: boolean } = {},
  options: StreamOptions = {},
): StreamScript {
  const answer = answerOf({}, 'resp');
  const events = responsesEvents(answer).slice(0, afterEvents);
  const told = { type: 'error', code: code ?? type, message, param: null, sequence_number: afterEvents };
  const error = { code: code ?? type, message };
  const response = { ...responsesBody(answer), status: 'failed', output: [], usage: null, error };
  const failed = { type: 'response.failed', sequence_number: afterEvents, response };
  const last = isFailed ? sseEvent(failed, failed.type) : sseEvent(told, told.type);
  return stream([...events, last], RESPONSES_PREAMBLE, options);
}

/** Makes a failed response with status 200. */
export function responsesFailedAnswer(code = 'server_error'): Script {
  const failed = responsesBody(answerOf({ texts: [] }, 'resp'));
  return respond({ body: { ...failed, status: 'failed', error: { code, message: 'Overloaded' }, usage: null } });
}

/** Edits the response within an event, and its usage one level deeper. */
function edited(event: string, { rawUsage, searches, response: members }: SaidInResponses): string {
  const start = event.indexOf('data: {') + 'data: '.length;
  const data = JSON.parse(event.slice(start)) as { response?: Record<string, unknown> };
  if (data.response === undefined) return event;
  const response = withSearches({ ...withRawUsage(data.response, rawUsage), ...members }, searches);
  return `${event.slice(0, start)}${JSON.stringify({ ...data, response })}\n\n`;
}
