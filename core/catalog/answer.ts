import type { Usage } from './usage';

/**
 * One event of an upstream's answer, in the same form for all dialects. An `AnswerReader` makes these events, from a stream as it arrives
 * or from a whole body at once. An `AnswerWriter` consumes them.
 */
export type AnswerEvent =
  | { readonly kind: 'begin'; readonly id?: string | undefined; readonly model?: string | undefined }
  /** A part of the answer begins. Parts of one choice may overlap; `at` is the part's number, counted from 0 over the whole answer. */
  | ({ readonly kind: 'open'; readonly at: number; readonly choice: number; readonly part: OpenPart } & Counting)
  /** More text of a part: of its content, or of a tool's input. */
  | ({ readonly kind: 'add'; readonly at: number; readonly text: string } & Counting)
  /** The signature of a reasoning part or a tool call. `value` is the text that the dialect's request writer sends back to the upstream. */
  | { readonly kind: 'sign'; readonly at: number; readonly value: string }
  /** A citation: the source of a text part. */
  | { readonly kind: 'cite'; readonly at: number; readonly citation: Citation }
  | { readonly kind: 'close'; readonly at: number }
  | {
      readonly kind: 'finish';
      readonly choice: number;
      readonly reason: FinishReason;
      /** The stop sequence that ended the answer; for the reasons `broken` and `unknown`, the vendor's own word for the reason. */
      readonly stop?: string | undefined;
    }
  /** The usage so far; later events complete it (`mergeUsage`). `isFinal`: no content follows. */
  | { readonly kind: 'usage'; readonly usage: Usage; readonly isFinal?: boolean }
  /** The end of the answer. No event follows. */
  | { readonly kind: 'end' }
  /** An error of the upstream. `body` is what the adapter's `judge` receives; without `body`, it receives the whole event or answer. */
  | { readonly kind: 'error'; readonly error: AnswerError; readonly body?: unknown };

/** The number of UTF-8 bytes of an event's content. It is set only if the event's text has another number of bytes. */
interface Counting {
  readonly bytes?: number;
}

/** The kind of a part that begins and, for a tool call, the id and name of the call. */
export type OpenPart =
  | { readonly kind: 'text' }
  | { readonly kind: 'reasoning' }
  | { readonly kind: 'refusal' }
  /** Content that other protocols cannot express. Its text counts as output, and writers never receive it. */
  | { readonly kind: 'other' }
  | { readonly kind: 'tool_call'; readonly id: string; readonly name: string; readonly isText?: boolean | undefined };

/** The source of a text part; members without a known value are absent. */
export interface Citation {
  readonly url?: string | undefined;
  readonly title?: string | undefined;
  /** The words quoted from the source. */
  readonly quote?: string | undefined;
  /** The cited characters of the part: from `from` to `to`. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/**
 * Why an answer ended. `length`: the output limit was reached; `filter`: the vendor's filter stopped the answer; `context`: the context
 * window is full; `broken`: the answer is incomplete, which clients get as an error; `unknown`: a word that the dialect does not know. For
 * `unknown`, clients get `end`, or an error if there is no content.
 */
export type FinishReason =
  | 'end'
  | 'length'
  | 'tool_calls'
  | 'stop'
  | 'filter'
  | 'pause'
  | 'context'
  | 'broken'
  | 'unknown';

/** An upstream's error, split into the parts that every dialect can express. */
export interface AnswerError {
  readonly message: string;
  readonly type?: string | undefined;
  readonly code?: string | undefined;
  readonly param?: string | undefined;
}

/** One server-sent event, separated from the byte stream. */
export interface SseEvent {
  /** The `event:` field, when there is one. */
  readonly name: string | undefined;
  /** The `data:` lines, joined by line feeds; undefined for an event without data, such as a comment. */
  readonly data: string | undefined;
}

/** Reads the answer of one attempt and keeps the state between its events. */
export interface AnswerReader {
  /** Converts one event of a stream into answer events: none, one or several. If it throws, the attempt ends. */
  event(event: SseEvent): readonly AnswerEvent[];
  /** Returns the answer events of an unstreamed answer. `body` is parsed JSON. */
  body(body: unknown): readonly AnswerEvent[];
  /** Ends the stream. Returns the missing events if the upstream closed the stream without the dialect's end event. */
  end(): readonly AnswerEvent[];
}

/** The facts of a call that the writer of its answer needs. */
export interface WrittenCall {
  /** The gateway's id of the call. */
  readonly requestId: string;
  /** The upstream's id of the answer, if clients may see it. Absent: the writer derives an id from `requestId`. */
  readonly id?: string;
  /** The model name that the client sees: the upstream's name of the model. */
  readonly model: string;
  /** The creation time that the client sees, as Unix time in seconds. */
  readonly createdAt: number;
  /** The estimated input tokens, which the client sees until the upstream reports the input; undefined if there is no estimate. */
  readonly inputTokens?: number | undefined;
  /** Encodes a signature for the client, which sends it back unchanged in a later call. */
  seal(value: string): string;
  /** The parsed request, because an answer of Responses repeats members of it. */
  readonly request: Readonly<Record<string, unknown>>;
}

/** An event as the client receives it, with notes on whether it has the stop reason or the final usage. */
export interface ClientEvent {
  readonly name?: string | undefined;
  /** The event's data: JSON, or `[DONE]`. */
  readonly data: string;
  /** Whether the event contains a stop reason. */
  readonly finish?: boolean;
  /** Whether the event contains the final usage, at the path `usageAt`; without `usageAt`, at the member `usage`. */
  readonly finalUsage?: boolean;
  readonly usageAt?: readonly string[];
}

/** Writes the answer of one attempt in the client's dialect. */
export interface AnswerWriter {
  /** Returns the client's events for one event of the answer: none, one or several. */
  write(event: AnswerEvent): readonly ClientEvent[];
  /** Returns the whole answer as an unstreamed body, written from all its events. */
  body(events: readonly AnswerEvent[]): Readonly<Record<string, unknown>>;
}
