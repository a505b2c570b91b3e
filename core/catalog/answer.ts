import type { Usage } from './usage';

/**
 * One event of an upstream's answer, in the same form for all dialects. A reader of a dialect makes these events, from a stream as
 * it arrives or from a whole body at once. A writer consumes them.
 */
export type AnswerEvent =
  | { readonly is: 'begin'; readonly id?: string | undefined; readonly model?: string | undefined }
  /** A part begins. Parts of one choice may overlap; each is known by its number, counted from 0 over the whole answer. */
  | ({ readonly is: 'open'; readonly at: number; readonly choice: number; readonly part: OpenPart } & Counting)
  /** More text of a part: of its content, or of a tool's input. */
  | ({ readonly is: 'add'; readonly at: number; readonly text: string } & Counting)
  /** The signature of a reasoning part or a tool call. `value` has the form in which the dialect's request writer sends it back. */
  | { readonly is: 'sign'; readonly at: number; readonly value: string }
  /** The source of a text part. */
  | { readonly is: 'cite'; readonly at: number; readonly citation: Citation }
  | { readonly is: 'close'; readonly at: number }
  | {
      readonly is: 'finish';
      readonly choice: number;
      readonly reason: FinishReason;
      /** The stop sequence, or the vendor's own word for `broken` and `unknown`. */
      readonly stop?: string | undefined;
    }
  /** What was used so far; later events complete it (`mergeUsage`). `isFinal`: no content may follow. */
  | { readonly is: 'usage'; readonly usage: Usage; readonly isFinal?: boolean }
  /** The end of the answer. Nothing follows. */
  | { readonly is: 'end' }
  /** `body`: what `judge` gets. Absent: the whole event or answer. */
  | { readonly is: 'error'; readonly error: AnswerError; readonly body?: unknown };

/** The UTF-8 bytes of an event's content, where its text has more or fewer. */
interface Counting {
  readonly bytes?: number;
}

/** A part of an answer that begins, by its kind. */
export type OpenPart =
  | { readonly is: 'text' }
  | { readonly is: 'reasoning' }
  | { readonly is: 'refusal' }
  /** Content that other protocols have no place for. Its text counts, and writers never get it. */
  | { readonly is: 'other' }
  | { readonly is: 'tool_call'; readonly id: string; readonly name: string; readonly isText?: boolean | undefined };

/** The source of a text part; unknown members are absent. */
export interface Citation {
  readonly url?: string | undefined;
  readonly title?: string | undefined;
  /** The cited words. */
  readonly quote?: string | undefined;
  /** Characters `from` to `to` of the part. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/**
 * `length`: the limit was reached; `filter`: the vendor's filter stopped the answer; `context`: the context window is full;
 * `broken`: the answer broke off, which clients get as an error; `unknown`: a word that the dialect does not know. Clients get `end`
 * for it, or an error if there is no content.
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

/** An upstream's own error, split into parts that every dialect has a place for. */
export interface AnswerError {
  readonly message: string;
  readonly type?: string | undefined;
  readonly code?: string | undefined;
  readonly param?: string | undefined;
}

/** One server-sent event, already cut out of the byte stream. */
export interface SseEvent {
  /** The `event:` field, when there is one. */
  readonly name: string | undefined;
  /** The `data:` lines joined by line feeds; undefined when the event has none (a comment). */
  readonly data: string | undefined;
}

/** Reads the answer of one attempt. It keeps the state that its events depend on. */
export interface AnswerReader {
  /** Returns the answer events that one event of a stream means: none, one or several. An exception ends the attempt. */
  event(event: SseEvent): readonly AnswerEvent[];
  /** Returns the answer events of an unstreamed answer. `body` is parsed JSON. */
  body(body: unknown): readonly AnswerEvent[];
  /** Ends the stream. Returns the events that are still missing if the upstream closed it without its own end. */
  end(): readonly AnswerEvent[];
}

/** The facts of a call that a writer of its answer needs. */
export interface WrittenCall {
  /** The gateway's id of the call. */
  readonly requestId: string;
  /** The upstream's id of the answer, if clients may name it. Absent: the answer gets one from `requestId`. */
  readonly id?: string;
  /** The model name that the client is shown: the upstream's own name. */
  readonly model: string;
  /** Unix time in seconds. */
  readonly createdAt: number;
  /** The estimate of the input, shown until the upstream reports it; absent: there is none. */
  readonly inputTokens?: number | undefined;
  /** Seals a signature for the client, which sends it back unchanged. */
  seal(value: string): string;
  /** The parsed request, because an answer of Responses repeats parts of it. */
  readonly request: Readonly<Record<string, unknown>>;
}

/** An event as the client receives it, with its meaning for the gateway. */
export interface ClientEvent {
  readonly name?: string | undefined;
  /** JSON, or `[DONE]`. */
  readonly data: string;
  /** Whether the event has a stop reason. */
  readonly finish?: boolean;
  /** Whether the event has the final usage, at `usageAt` (absent: at the member `usage`). */
  readonly finalUsage?: boolean;
  readonly usageAt?: readonly string[];
}

/** Writes the answer of one attempt in the client's dialect. */
export interface AnswerWriter {
  /** Returns the client's events for one event of the answer: none, one or several. */
  write(event: AnswerEvent): readonly ClientEvent[];
  /** Returns the whole answer as an unstreamed body, from all its events. */
  body(events: readonly AnswerEvent[]): Readonly<Record<string, unknown>>;
}
