import { sseEvent } from '../../../demo/dialects/answer';
import { responsesBody, responsesEvents, responsesFailedEvent } from '../../../demo/dialects/responses';
import { answerOf, type Said, withRawUsage } from './answer';
import { type ChatFailure, chatFailure } from './chat';
import { type Response, respond } from './respond';
import type { Script } from './script';
import { type StreamOptions, type StreamScript, stream } from './stream';

/** created, in_progress, output_item.added, content_part.added: what the Responses protocol sends before the first content. */
export const RESPONSES_PREAMBLE = 4;

export function responsesAnswer(said: Said = {}, response: Omit<Response, 'body'> = {}): Script {
  return respond({ ...response, body: withRawUsage(responsesBody(answerOf(said, 'resp')), said.rawUsage) });
}

export function responsesStream(said: Said & StreamOptions = {}): StreamScript {
  const events = responsesEvents(answerOf(said, 'resp')).map((event) => withRawResponseUsage(event, said.rawUsage));
  return stream(events, RESPONSES_PREAMBLE, said);
}

/** An error answer has the same shape as in the Chat protocol. */
export const responsesFailure: typeof chatFailure = chatFailure;

/** A stream that ends with an error event, or with `response.failed`: as its very first one, or after so many of a good answer's. */
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
  const last = isFailed ? responsesFailedEvent(answer, code ?? type, message, afterEvents) : sseEvent(told, 'error');
  return stream([...events, last], RESPONSES_PREAMBLE, options);
}

/** A response of a 200 that has failed. */
export function responsesFailedAnswer(code = 'server_error'): Script {
  const failed = responsesBody(answerOf({ texts: [] }, 'resp'));
  return respond({ body: { ...failed, status: 'failed', error: { code, message: 'Overloaded' }, usage: null } });
}

/** Events carry the response, and with it its usage, one member further inside. */
function withRawResponseUsage(event: string, rawUsage: unknown): string {
  if (rawUsage === undefined) return event;
  const start = event.indexOf('data: {') + 'data: '.length;
  const data = JSON.parse(event.slice(start)) as { response?: Record<string, unknown> };
  if (data.response === undefined) return event;
  const response = withRawUsage(data.response, rawUsage);
  return `${event.slice(0, start)}${JSON.stringify({ ...data, response })}\n\n`;
}
