import { chatBody, chatError, chatErrorEvent, chatEvents } from '../../../demo/dialects/chat';
import { answerOf, eventWithRawUsage, type Said, withRawUsage } from './answer';
import { type Response, respond } from './respond';
import type { Script } from './script';
import { type StreamOptions, type StreamScript, stream } from './stream';

/** The chunk that has only the role comes before the first content of the Chat protocol. */
export const CHAT_PREAMBLE = 1;

export function chatAnswer(said: Said = {}, response: Omit<Response, 'body'> = {}): Script {
  return respond({ ...response, body: withRawUsage(chatBody(answerOf(said, 'chatcmpl')), said.rawUsage) });
}

export interface ChatStream extends Said, StreamOptions {
  /** Ends with the usage chunk. When not said: as the call asks by `stream_options.include_usage`; `events` have it. */
  readonly withUsage?: boolean;
}

export function chatStream(said: ChatStream = {}): StreamScript {
  const answer = answerOf(said, 'chatcmpl');
  const script = (withUsage: boolean): StreamScript =>
    stream(
      chatEvents(answer, withUsage).map((event) => eventWithRawUsage(event, said.rawUsage)),
      CHAT_PREAMBLE,
      said,
    );
  return {
    ...script(said.withUsage ?? true),
    answer: (exchange) => script(said.withUsage ?? asksForUsage(exchange.call.json)).answer(exchange),
  };
}

export interface ChatFailure {
  readonly type?: string;
  readonly code?: string | null;
  readonly message?: string;
}

/** An error answer in the shape of the Chat protocol. */
export function chatFailure(
  status: number,
  { type = 'server_error', code = null, message = 'scripted failure' }: ChatFailure = {},
  headers: Readonly<Record<string, string>> = {},
): Script {
  return respond({ status, headers, body: chatError(type, code, message) });
}

/** A stream that ends with an error chunk: as its very first one, or after so many of a good answer's. */
export function chatErrorStream(
  {
    type = 'server_error',
    code = null,
    message = 'Overloaded',
    afterEvents = 0,
  }: ChatFailure & { readonly afterEvents?: number } = {},
  options: StreamOptions = {},
): StreamScript {
  const events = chatEvents(answerOf({}, 'chatcmpl'), true).slice(0, afterEvents);
  return stream([...events, chatErrorEvent(type, code, message)], CHAT_PREAMBLE, options);
}

function asksForUsage(body: unknown): boolean {
  const options = (body as { stream_options?: { include_usage?: unknown } | null } | null)?.stream_options;
  return options?.include_usage === true;
}
