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

/** What stories need to know of a protocol to be told in it. */
export interface TestDialect {
  answer(said?: Said, response?: Parameters<typeof chatAnswer>[1]): Script;
  /** Ends with its usage. */
  stream(said?: Said & StreamOptions): StreamScript;
  failure(status: number, what?: Parameters<typeof chatFailure>[1], headers?: Readonly<Record<string, string>>): Script;
  errorStream(what?: { readonly afterEvents?: number }): StreamScript;
  /** Events of a script before its first content. */
  readonly preamble: number;
  /** Events between the last piece of text and the usage. */
  readonly beforeUsage: number;
  /** What a client sees of the last event before those. */
  readonly seenBeforeUsage: string;
  /** The end of a whole stream, and of one that the gateway ends with an error. */
  readonly end: RegExp;
  readonly errorEnd: RegExp;
  /** How the gateway keeps a silent stream alive. */
  readonly sign: string;
  /** Its last event tells the stop reason and the usage, so that no stream is whole without it. */
  readonly endTellsAll: boolean;
  /** Some other upstream can go on with what broke off. */
  readonly canBeContinued: boolean;
  /** The text of a stream, as a client puts it together. */
  textOf(stream: string): string;
}

export const DIALECT: Readonly<Record<TestProtocol, TestDialect>> = {
  messages: {
    answer: messagesAnswer,
    stream: messagesStream,
    failure: messagesFailure as TestDialect['failure'],
    errorStream: messagesErrorStream,
    preamble: 3,
    // One event tells both.
    beforeUsage: 1,
    seenBeforeUsage: 'content_block_stop',
    end: /message_stop/,
    errorEnd: /^event: error\ndata: \{"type":"error"/,
    sign: 'event: ping\ndata: {"type": "ping"}\n\n',
    endTellsAll: false,
    canBeContinued: true,
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
    canBeContinued: true,
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
    // One event tells both: output_text.done, content_part.done and output_item.done stand before it.
    beforeUsage: 3,
    seenBeforeUsage: 'response.output_item.done',
    end: /event: response\.completed\n/,
    errorEnd: /^event: response\.failed\ndata: \{"type":"response\.failed"/,
    sign: ': keep-alive\n\n',
    endTellsAll: true,
    // Its events name items, and nobody takes one up in the middle.
    canBeContinued: false,
    textOf: (stream) =>
      join<{ type?: string; delta?: string }>(stream, ({ type, delta }) =>
        type === 'response.output_text.delta' ? delta : undefined,
      ),
  },
};

/** The text in the events of a stream. */
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

/** Events of a script before its first content, and after so many pieces of text. */
export function afterTexts(protocol: TestProtocol, texts: number): number {
  return DIALECT[protocol].preamble + texts;
}

function each<T>(pick: (dialect: TestDialect) => T): Readonly<Record<TestProtocol, T>> {
  const { messages, chat, responses } = DIALECT;
  return { messages: pick(messages), chat: pick(chat), responses: pick(responses) };
}
