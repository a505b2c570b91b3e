import { sseEvent } from '../../../demo/dialects/answer';
import { messagesBody, messagesError, messagesEvents } from '../../../demo/dialects/messages';
import { answerOf, eventWithRawUsage, type Said, withRawUsage } from './answer';
import { type Response, respond } from './respond';
import type { Script } from './script';
import { type StreamOptions, type StreamScript, stream } from './stream';

/** The number of events before the first content: message_start, ping, content_block_start. */
const MESSAGES_PREAMBLE = 3;

export function messagesAnswer(said: Said = {}, response: Omit<Response, 'body'> = {}): Script {
  return respond({ ...response, body: withRawUsage(messagesBody(answerOf(said, 'msg')), said.rawUsage) });
}

export function messagesStream(said: Said & StreamOptions = {}): StreamScript {
  const events = messagesEvents(answerOf(said, 'msg')).map((event) => eventWithRawUsage(event, said.rawUsage));
  return stream(events, MESSAGES_PREAMBLE, said);
}

/** Answers as a stream or in one piece, as the call requests. */
export function messagesAsAsked(said: Said = {}): Script {
  return {
    answer: (exchange) => {
      const { stream } = exchange.call.json as { readonly stream?: boolean };
      return (stream === true ? messagesStream(said) : messagesAnswer(said)).answer(exchange);
    },
  };
}

export interface Failure {
  readonly type?: string;
  readonly message?: string;
}

/** Makes an error answer in the form of the Messages protocol. */
export function messagesFailure(
  status: number,
  { type = 'api_error', message = 'scripted failure' }: Failure = {},
  headers: Readonly<Record<string, string>> = {},
): Script {
  return respond({ status, headers, body: messagesError(type, message) });
}

/** Makes a stream that ends with an error event: as its first event, or after this many events of a good answer. */
export function messagesErrorStream(
  {
    type = 'overloaded_error',
    message = 'Overloaded',
    afterEvents = 0,
  }: Failure & { readonly afterEvents?: number } = {},
  options: StreamOptions = {},
): StreamScript {
  const events = messagesEvents(answerOf({}, 'msg')).slice(0, afterEvents);
  return stream([...events, sseEvent(messagesError(type, message), 'error')], MESSAGES_PREAMBLE, options);
}
