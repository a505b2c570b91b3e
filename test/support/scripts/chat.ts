import { sseEvent } from '../../../demo/dialects/answer';
import { chatBody, chatError, chatEvents } from '../../../demo/dialects/chat';
import { answerOf, eventWithRawUsage, type Said, withRawUsage } from './answer';
import { type Response, respond } from './respond';
import type { Script } from './script';
import { type StreamOptions, type StreamScript, stream } from './stream';

/** The number of chunks before the first content: one with only the role. */
const CHAT_PREAMBLE = 1;

export function chatAnswer(said: Said = {}, response: Omit<Response, 'body'> = {}): Script {
  return respond({ ...response, body: withRawUsage(chatBody(answerOf(said, 'chatcmpl')), said.rawUsage) });
}

export interface ChatStream extends Said, StreamOptions {
  /** Whether the stream ends with the usage chunk. Default: as the call requests by `stream_options.include_usage`; `events` include it. */
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

/** Makes an error answer in the form of the Chat protocol. */
export function chatFailure(
  status: number,
  { type = 'server_error', code = null, message = 'scripted failure' }: ChatFailure = {},
  headers: Readonly<Record<string, string>> = {},
): Script {
  return respond({ status, headers, body: chatError(type, code, message) });
}

/** Makes a stream that ends with an error chunk: as its first one, or after this many chunks of a good answer. */
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
  return stream([...events, sseEvent(chatError(type, code, message))], CHAT_PREAMBLE, options);
}

function asksForUsage(body: unknown): boolean {
  const options = (body as { stream_options?: { include_usage?: unknown } | null } | null)?.stream_options;
  return options?.include_usage === true;
}
