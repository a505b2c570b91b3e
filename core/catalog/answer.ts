import type { Usage } from './usage';

/**
 * What an upstream's answer says, in order, whatever dialect it came in: a stream as it comes, or all of a body at once. A reader of a
 * dialect makes these and a writer takes them.
 */
export type AnswerEvent =
  | { readonly is: 'begin'; readonly id?: string | undefined; readonly model?: string | undefined }
  /** A part begins. Parts of one choice may overlap; each is known by its number, counted from 0 over the whole answer. */
  | { readonly is: 'open'; readonly at: number; readonly choice: number; readonly part: OpenPart }
  /** More of the text of a part: of what it says, or of a tool's input. */
  | { readonly is: 'add'; readonly at: number; readonly text: string }
  /** A part of reasoning, or a tool call, has its signature: `value` as the dialect's request writer needs it to send it back. */
  | { readonly is: 'sign'; readonly at: number; readonly value: string }
  /** Where a part of text has something from. */
  | { readonly is: 'cite'; readonly at: number; readonly citation: Citation }
  | { readonly is: 'close'; readonly at: number }
  | {
      readonly is: 'finish';
      readonly choice: number;
      readonly reason: FinishReason;
      readonly stop?: string | undefined;
    }
  /** What was used so far; what comes later completes it (`mergeUsage`). `reasoning` tokens stand in the output tokens, too. */
  | { readonly is: 'usage'; readonly usage: Usage; readonly reasoning?: number | undefined }
  /** Nothing more comes. */
  | { readonly is: 'end' }
  | { readonly is: 'error'; readonly error: AnswerError };

/** A part of an answer that begins, by what it is. */
export type OpenPart =
  | { readonly is: 'text' }
  | { readonly is: 'reasoning' }
  | { readonly is: 'refusal' }
  | { readonly is: 'tool_call'; readonly id: string; readonly name: string; readonly isText?: boolean | undefined };

/** Where a part of text has something from; what is not known is absent. */
export interface Citation {
  readonly url?: string | undefined;
  readonly title?: string | undefined;
  /** The words that it is about. */
  readonly quote?: string | undefined;
  /** Characters `from` to `to` of the part. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** `length`: the limit was reached; `filter`: the vendor did not let it go on; `context`: the context window is full. */
export type FinishReason = 'end' | 'length' | 'tool_calls' | 'stop' | 'filter' | 'pause' | 'context';

/** An upstream's own error, in parts that every dialect has a place for. */
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

/** Reads the answer of one attempt. It keeps the state that its events build upon. */
export interface AnswerReader {
  /** What an event of a stream says: nothing, one thing or several. What it throws ends the attempt. */
  event(event: SseEvent): readonly AnswerEvent[];
  /** What an unstreamed answer says. `body` is parsed JSON. */
  body(body: unknown): readonly AnswerEvent[];
  /** The stream is over. What is still to be said, where it ended without a word of its own. */
  end(): readonly AnswerEvent[];
}

/** What a writer of answers has to know of its call. */
export interface WrittenCall {
  /** The gateway's id of the call. */
  readonly requestId: string;
  /** The model as the client is to be told: the upstream's own name. */
  readonly model: string;
  /** Unix time in seconds. */
  readonly createdAt: number;
  /** Seals a signature for the client, who sends it back as it is. */
  seal(value: string): string;
  /** The parsed request, as far as an answer repeats it (Responses does). */
  readonly request: Readonly<Record<string, unknown>>;
}

/** An event as a client is given it, and what it means there. */
export interface ClientEvent {
  readonly name?: string | undefined;
  /** JSON, or `[DONE]`. */
  readonly data: string;
  /** A stop reason stands in it. */
  readonly finish?: boolean;
  /** The usage stands in it, at `usageAt` (absent: at the member `usage`). */
  readonly finalUsage?: boolean;
  readonly usageAt?: readonly string[];
}

/** Writes the answer of one attempt in the client's dialect. */
export interface AnswerWriter {
  /** The client's events for one of the answer: none, one or several. */
  write(event: AnswerEvent): readonly ClientEvent[];
  /** The whole answer as an unstreamed body, from all its events. */
  body(events: readonly AnswerEvent[]): Readonly<Record<string, unknown>>;
}
