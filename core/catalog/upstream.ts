import type { Schema, Settings } from '../settings';
import type { AnswerError, AnswerReader, SseEvent } from './answer';
import type { Conversation } from './conversation';
import type { Protocol } from './protocols';
import type { TokenCounts, Usage } from './usage';

export type { SseEvent } from './answer';
export type { Protocol } from './protocols';

/** What an adapter is told of a call. */
export interface ModelCall {
  readonly protocol: Protocol;
  /** What stands behind the protocol's path in the call's, such as `/compact`; absent where nothing does. */
  readonly operation?: string | undefined;
  /** The upstream's own name of the model. */
  readonly model: string;
  readonly stream: boolean;
  /** The query string as it came, with its `?`, or empty. */
  readonly query: string;
  /** The headers that may be forwarded: content-type, accept and the vendor-prefixed ones, names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The raw JSON text of top-level members whose value is short (at most 4 KiB), by unescaped key. */
  readonly members: ReadonlyMap<string, string>;
  /** The upstream understands `stream_options.include_usage`. */
  readonly streamUsage: boolean;
}

/** One change to the top level of the request body; every byte that is not named stays as it came. */
export type BodyEdit =
  | { readonly member: string; readonly set: string /* JSON text; the member is appended when it is not there */ }
  | { readonly member: string; readonly push: string /* JSON text of one more item of the array that is there */ }
  | { readonly member: string; readonly drop: true };

/** What an adapter asks its upstream with. */
export interface UpstreamRequest {
  /** Path and query below the upstream's base URL, for example `/v1/messages?beta=true`. */
  readonly path: string;
  /** Beside content-type and accept-encoding, which the gateway sets. The credential is added by `authorize`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly edits: readonly BodyEdit[];
}

/** An answer that is not a success, or an error event that came before any content. */
export interface UpstreamFailure {
  readonly protocol: Protocol;
  /** HTTP status; 200 when the failure came as an event of a stream. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The parsed body or event data; undefined when it is not JSON or larger than 64 KiB. */
  readonly body: unknown;
}

/**
 * What to do about a failure: ask the next candidate, give it to the caller as it is, or ask only candidates with a
 * larger context.
 */
export type Verdict = 'next' | 'relay' | 'larger-context';

/** What an event means for routing, metering and the end of the stream. Everything absent is "no". */
export interface EventNote {
  /** Text, reasoning, a refusal or tool input begins or goes on: from here on no other upstream can answer. */
  readonly content?: boolean;
  /** UTF-8 bytes of text, reasoning and tool arguments in this event. */
  readonly contentBytes?: number;
  /** Counts this event reports, cumulative for the call so far. */
  readonly usage?: Usage;
  /** A stop reason has been given: that choice is whole even if nothing follows. `FinishTracker` says when all are. */
  readonly finish?: boolean;
  /** The choices (`n`) whose stop reason stands in this event, by index; absent where a protocol has only one. */
  readonly finishedChoices?: readonly number[];
  /**
   * This event carries the final usage at `usageAt`, where `cost` may be added. In Chat the usage may move into the event with the stop
   * reason; then an event that has neither content nor a stop reason is dropped.
   */
  readonly finalUsage?: boolean;
  /** The members of the event's data that lead to its usage; absent: the top-level member `usage`. */
  readonly usageAt?: readonly string[];
  /** The protocol's own end (`message_stop`, `[DONE]`, `response.completed`). */
  readonly done?: boolean;
  /** The upstream reports an error inside the stream; `body` is what `judge` is given. */
  readonly error?: { readonly body: unknown };
  /** The data could not be understood. */
  readonly malformed?: boolean;
}

/**
 * Members of events that only say more. An event that differs from one that `readEvent` was given before only in such members means the
 * same, and is not read: its text counts with its UTF-8 bytes.
 */
export interface Deltas {
  /** Whose text counts, whatever it is. All text that counts stands in these, at any depth of the data. */
  readonly texts: readonly string[];
  /** Whose texts and numbers mean nothing to `readEvent`. */
  readonly ignored?: readonly string[];
}

/** Says what one event means. */
export interface ReadEvent {
  (event: SseEvent): EventNote;
  /** Absent: every event is read. It belongs to the function, so that an adapter with another one does not inherit it. */
  readonly deltas?: Deltas | undefined;
}

/** Returns `readEvent`, and says of it which events it need not be given. */
export function withDeltas(deltas: Deltas, readEvent: (event: SseEvent) => EventNote): ReadEvent {
  return Object.assign(readEvent, { deltas });
}

/**
 * Speaks a protocol of clients to an upstream. An adapter only translates: sockets, timeouts, retries, framing, counting and pricing
 * belong to the gateway. It keeps no state between events. It is native: the dialect of the client is that of the upstream, or the gateway
 * translates from one of these dialects into the other.
 */
export interface UpstreamAdapter<S extends Schema = Schema> {
  readonly contract: 'upstream/2';
  /** The word after `adapter:` in serviceEndpoints. */
  readonly name: string;
  /** The protocols clients may speak to it without translation. */
  readonly protocols: readonly Protocol[];
  /** Its own settings beside those every upstream has. */
  readonly schema: S;
  request(call: ModelCall, settings: Settings<S>): UpstreamRequest;
  /** The headers that show the platform's credential to the upstream. */
  authorize(credential: string, settings: Settings<S>): Readonly<Record<string, string>>;
  /**
   * Further headers that depend on the request as it goes out, such as a signature over it, or on a token that has to be fetched.
   * It is asked after `authorize`, and must resolve within 10 s. Absent: there are none.
   */
  sign?(
    request: UnsignedRequest,
    credential: string,
    settings: Settings<S>,
  ): Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>;
  /** How a vendor frames its streams that sends no server-sent events; absent: it sends these. */
  readonly framing?: Framing;
  judge(failure: UpstreamFailure): Verdict;
  readonly readEvent: ReadEvent;
  /** The usage of an unstreamed answer's parsed body, and the bytes of text in it in case the usage is unusable. */
  readBody(body: unknown): {
    readonly usage: Usage;
    readonly contentBytes: number;
    /** The body is an error although its status is a success; `error.body` is what `judge` is given. */
    readonly error?: { readonly body: unknown };
  };
  /** How an answer that broke off is taken up at an upstream that can go on from its beginning; absent: it cannot be. */
  readonly continuation?: Continuation;
  /** How it speaks a dialect of its own, for an adapter without `protocols`. */
  readonly own?: OwnDialect<S>;
}

/** What a translating adapter does beside what every adapter does. */
export type OwnDialect<S extends Schema = Schema> = Pick<
  TranslatingAdapter<S>,
  'dialect' | 'request' | 'answer' | 'readError'
>;

/** A call for an upstream whose dialect no client speaks. */
export interface TranslatedCall {
  readonly conversation: Conversation;
  /** The upstream's own name of the model. */
  readonly model: string;
  /** The most output tokens of the model: what is named to an upstream that must have a limit where the call has none. */
  readonly maxOutput: number;
  /** The upstream's name, by which it knows its own signatures. */
  readonly upstream: string;
  /** How the model is told how much to reason, as the operator says. Absent: it is not told, whatever the call says. */
  readonly reasoning?: ReasoningSetting | undefined;
}

/** `effort`: by a word. `budget`: by a number of tokens. */
export type ReasoningSetting = (typeof REASONING_SETTINGS)[number];
export const REASONING_SETTINGS = ['effort', 'budget'] as const;

/** What a translating adapter has written. */
export interface TranslatedRequest {
  /** Path and query below the upstream's base URL. */
  readonly path: string;
  /** Beside content-type and accept-encoding, which the gateway sets. The credential is added by `authorize`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The whole body, as JSON can say it. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** Speaks an upstream's own dialect. It writes requests from the model of a conversation and reads answers into that of an answer. */
export interface TranslatingAdapter<S extends Schema = Schema>
  extends Pick<UpstreamAdapter<S>, 'contract' | 'name' | 'schema' | 'authorize' | 'sign' | 'framing' | 'judge'> {
  /** The name of its dialect, for people and for signatures. */
  readonly dialect: string;
  /** @throws NotTranslatable for what the dialect has no place for */
  request(call: TranslatedCall, settings: Settings<S>): TranslatedRequest;
  /** Reads the answer of one attempt. */
  answer(call: TranslatedCall): AnswerReader;
  /** The vendor's words in the parsed body of a refusal. Absent: its `error.message`, `error.code` and `error.type`. */
  readError?(body: unknown): AnswerError;
}

/** A request as it goes out, but for what `sign` adds. */
export interface UnsignedRequest {
  readonly method: string;
  /** With the query, each byte as it is sent. `host` of the headers is the one of this. */
  readonly url: URL;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** SHA-256 of the body's bytes, in hex. */
  readonly bodySha256: string;
}

/** Streams whose bytes are no server-sent events. */
export interface Framing {
  /** The media type of such an answer, in lower case and without parameters. Other answers are not decoded. */
  readonly mediaType: string;
  /** Begins one stream. */
  open(): FrameDecoder;
}

/** Decodes one stream; keeps the state that adapters do not have. */
export interface FrameDecoder {
  /**
   * Takes the bytes as they arrive and returns the server-sent events that they complete, as text; empty where they complete none. What
   * cannot be read becomes an event that `readEvent` calls malformed.
   */
  push(chunk: Buffer): string;
}

/** Goes on from the text a caller has been given already (`midStream: continue`). */
export interface Continuation {
  /** The edits that put the text into the request, as the beginning of the answer. */
  prefill(call: ModelCall, beginning: AnswerBeginning): readonly BodyEdit[];
  /** Follows one caller's stream from its first event; keeps the state that adapters do not have. */
  follow(): StreamFollower;
}

/** What a caller has been given of an answer that broke off. */
export interface AnswerBeginning {
  /** Not empty, and without white space at its end, which some upstreams refuse. */
  readonly text: string;
  /** What is left of the limit the caller set for the answer; undefined when there is none. */
  readonly outputTokensLeft: number | undefined;
}

/** Follows one caller's stream, and knows what was said. */
export interface StreamFollower {
  /** An event as the caller was given it. */
  note(event: SseEvent): void;
  /** All that was said; undefined when there was more than text, which nobody can go on from. */
  readonly said: string | undefined;
  /** From here on events come from an answer that goes on behind `text`, the beginning of what was said. */
  goOn(text: string): void;
  /**
   * An event of that answer as it follows on what the caller has; undefined when nothing of it is news. `usage` is what the
   * caller is told in place of the event's own counts.
   */
  continued(event: SseEvent, usage: Usage | undefined): string | undefined;
}

/** An adapter of the contract before: it reports one pass, as five counts. */
export interface UpstreamAdapter1<S extends Schema = Schema>
  extends Omit<UpstreamAdapter<S>, 'contract' | 'readEvent' | 'readBody'> {
  readonly contract: 'upstream/1';
  readEvent(event: SseEvent): Omit<EventNote, 'usage'> & { readonly usage?: TokenCounts };
  readBody(body: unknown): Omit<ReturnType<UpstreamAdapter['readBody']>, 'usage'> & { readonly usage: TokenCounts };
}

/** An adapter as it is registered. */
export type AnyAdapter = UpstreamAdapter | UpstreamAdapter1 | TranslatingAdapter;

/**
 * An adapter as a package brings it. What else it must have is looked at when it is registered, so that compilers of authors need not
 * compare adapters of all settings.
 */
export type BroughtAdapter = Pick<AnyAdapter, 'name' | 'contract'>;

/** Helps TypeScript check an adapter against its own settings. */
export function defineAdapter<const S extends Schema>(adapter: TranslatingAdapter<S>): TranslatingAdapter<S>;
export function defineAdapter<const S extends Schema>(adapter: UpstreamAdapter<S>): UpstreamAdapter<S>;
export function defineAdapter<const S extends Schema>(adapter: UpstreamAdapter1<S>): UpstreamAdapter1<S>;
export function defineAdapter(adapter: AnyAdapter): AnyAdapter {
  return adapter;
}
