import type { TestProtocol } from './calls';
import {
  chatAnswer,
  chatErrorStream,
  chatFailure,
  chatStream,
  messagesAnswer,
  messagesErrorStream,
  messagesFailure,
  messagesStream,
  responsesAnswer,
  responsesErrorStream,
  responsesFailure,
  responsesStream,
  type Said,
  type Script,
  type StreamOptions,
  type StreamScript,
} from './upstream';

/** The properties of a protocol that tests need to run in it. */
interface TestDialect {
  answer(said?: Said, response?: Parameters<typeof chatAnswer>[1]): Script;
  /** Makes a stream that ends with its usage. */
  stream(said?: Said & StreamOptions): StreamScript;
  failure(status: number, what?: Parameters<typeof chatFailure>[1], headers?: Readonly<Record<string, string>>): Script;
  errorStream(what?: { readonly afterEvents?: number }): StreamScript;
  /** The number of events before the first content. */
  readonly preamble: number;
  /** The number of events between the last piece of text and the usage. */
  readonly beforeUsage: number;
  /** What a client receives of the last event before those. */
  readonly seenBeforeUsage: string;
  /** Matches the end of a whole stream, and of one that the gateway ends with an error. */
  readonly end: RegExp;
  readonly errorEnd: RegExp;
  /** The gateway's keep-alive comment for a silent stream. */
  readonly sign: string;
  /** Whether the last event has both stop reason and usage, so that a stream without it is incomplete. */
  readonly endTellsAll: boolean;
  /** Returns the text of a stream as a client assembles it. */
  textOf(stream: string): string;
}

export const DIALECT: Readonly<Record<TestProtocol, TestDialect>> = {
  messages: {
    answer: messagesAnswer,
    stream: messagesStream,
    failure: messagesFailure as TestDialect['failure'],
    errorStream: messagesErrorStream,
    preamble: 3,
    // One event has both stop reason and usage.
    beforeUsage: 1,
    seenBeforeUsage: 'content_block_stop',
    end: /message_stop/,
    errorEnd: /^event: error\ndata: \{"type":"error"/,
    sign: 'event: ping\ndata: {"type": "ping"}\n\n',
    endTellsAll: false,
    textOf: (stream) => join<{ delta?: { text?: string } }>(stream, ({ delta }) => delta?.text),
  },
  chat: {
    answer: chatAnswer,
    stream: (said) => chatStream({ withUsage: true, ...said }),
    failure: chatFailure,
    errorStream: chatErrorStream,
    preamble: 1,
    beforeUsage: 1,
    seenBeforeUsage: 'finish_reason":"stop"',
    end: /\[DONE\]/,
    errorEnd: /^data: \{"error":\{/,
    sign: ': keep-alive\n\n',
    endTellsAll: false,
    textOf: (stream) =>
      join<{ choices?: readonly { delta: { content?: string } }[] }>(
        stream,
        ({ choices }) => choices?.[0]?.delta.content,
      ),
  },
  responses: {
    answer: responsesAnswer,
    stream: responsesStream,
    failure: responsesFailure,
    errorStream: responsesErrorStream,
    preamble: 4,
    // One event has both; output_text.done, content_part.done and output_item.done come before it.
    beforeUsage: 3,
    seenBeforeUsage: 'response.output_item.done',
    end: /event: response\.completed\n/,
    errorEnd: /^event: response\.failed\ndata: \{"type":"response\.failed"/,
    sign: ': keep-alive\n\n',
    endTellsAll: true,
    // Its events name items, and no upstream continues an item.
    textOf: (stream) =>
      join<{ type?: string; delta?: string }>(stream, ({ type, delta }) =>
        type === 'response.output_text.delta' ? delta : undefined,
      ),
  },
};

/** Joins the text of a stream's events. */
function join<T>(stream: string, textIn: (event: T) => string | undefined): string {
  return [...stream.matchAll(/^data: (\{.*\})$/gm)]
    .map(([, data]) => textIn(JSON.parse(data ?? '') as T) ?? '')
    .join('');
}

export const answerOf = each(({ answer }) => answer);
export const failureOf = each(({ failure }) => failure);
export const errorStreamOf = each(({ errorStream }) => errorStream);

export function streamOf(protocol: TestProtocol, said: Said & StreamOptions = {}): StreamScript {
  return DIALECT[protocol].stream(said);
}

/** Returns the number of events of a script up to the first content and this many pieces of text. */
export function afterTexts(protocol: TestProtocol, texts: number): number {
  return DIALECT[protocol].preamble + texts;
}

function each<T>(pick: (dialect: TestDialect) => T): Readonly<Record<TestProtocol, T>> {
  const { messages, chat, responses } = DIALECT;
  return { messages: pick(messages), chat: pick(chat), responses: pick(responses) };
}
