import { asArray, asObject, asText, type JsonObject } from '../base/json-values';
import type { Schema, Settings } from '../base/settings';
import type { AnswerError, AnswerReader } from './answer';
import type { Conversation, Feature } from './conversation';
import type { Protocol } from './protocols';
import type { Usage } from './usage';

export type { SseEvent } from './answer';
export type { Protocol } from './protocols';

/** The parts of a call that an adapter gets. */
export interface ModelCall {
  readonly protocol: Protocol;
  /** The suffix of the call's path after its protocol, such as `/compact`; absent without one. */
  readonly operation?: string | undefined;
  /** The upstream's own name of the model. */
  readonly model: string;
  readonly stream: boolean;
  /** The unchanged query string with its `?`, or empty. */
  readonly query: string;
  /** The headers that the gateway may forward: content-type, accept and the vendor-prefixed ones, names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The raw JSON text of top-level members whose value is short (at most 4 KiB), by unescaped key. */
  readonly members: ReadonlyMap<string, string>;
  /** Whether the upstream understands `stream_options.include_usage`. */
  readonly streamUsage: boolean;
}

/** One change to the top level of the request body. All other bytes stay as they came. */
export type BodyEdit =
  | { readonly member: string; readonly set: string /* JSON text; the member is appended when it is not there */ }
  | { readonly member: string; readonly drop: true };

/** The request that an adapter writes for its upstream. */
export interface UpstreamRequest {
  /** Path and query below the upstream's base URL, for example `/v1/messages?beta=true`. */
  readonly path: string;
  /** Headers beside content-type and accept-encoding, which the gateway sets. `authorize` adds the credential. */
  readonly headers: Readonly<Record<string, string>>;
  readonly edits: readonly BodyEdit[];
}

/** An answer that is not a success, or an error event before any content. */
export interface UpstreamFailure {
  readonly protocol: Protocol;
  /** HTTP status; 200 when the failure was an event of a stream. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The parsed body or event data; undefined when it is not JSON or larger than 64 KiB. */
  readonly body: unknown;
}

/** The reaction to a failure: try the next candidate, relay the failure to the client, or try only candidates with a larger context. */
export type Verdict = 'next' | 'relay' | 'larger-context';

/** The meaning of an event for routing, metering and the end of the stream. An absent member means "no". */
export interface EventNote {
  /** Whether text, reasoning, a refusal or tool input begins or continues. From then on no other upstream can answer. */
  readonly content?: boolean;
  /** UTF-8 bytes of text, reasoning and tool arguments in this event. */
  readonly contentBytes?: number;
  /** The counts that this event reports, cumulative for the call so far. */
  readonly usage?: Usage;
  /** Whether the event gives a stop reason: that choice is whole even if nothing follows. `FinishTracker` knows when all choices are whole. */
  readonly finish?: boolean;
  /** The choices (`n`) whose stop reason this event has, by index; absent where a protocol has only one. */
  readonly finishedChoices?: readonly number[];
  /**
   * Whether this event has the final usage at `usageAt`, where the gateway may add `cost`. In Chat the gateway may move the usage
   * into the event with the stop reason. It then drops an event without content and stop reason.
   */
  readonly finalUsage?: boolean;
  /** The members of the event's data that lead to its usage; absent: the top-level member `usage`. */
  readonly usageAt?: readonly string[];
  /** Whether this event is the protocol's own end (`message_stop`, `[DONE]`, `response.completed`). */
  readonly done?: boolean;
  /** The error that the upstream reports inside the stream; `judge` gets its `body`. */
  readonly error?: { readonly body: unknown };
  /** Whether the data is no JSON object. */
  readonly malformed?: boolean;
}

/**
 * Members of events that only continue the text. An event that differs only in such members from one already read means the same.
 * The gateway does not parse it and counts its text in UTF-8 bytes.
 */
export interface Deltas {
  /** The members whose text counts. All text that counts is in these members, at any depth of the data. */
  readonly texts: readonly string[];
  /** The members whose texts and numbers mean nothing. */
  readonly ignored?: readonly string[];
}

/**
 * Speaks a protocol of clients to an upstream. An adapter only writes requests and judges failures: sockets, timeouts, retries,
 * framing, counting and pricing belong to the gateway, which reads the answers of each protocol itself. The adapter is native: the
 * client uses the upstream's dialect, or the gateway translates between the two.
 */
export interface UpstreamAdapter<S extends Schema = Schema> {
  readonly contract: 'upstream/1';
  /** The word after `adapter:` in serviceEndpoints. */
  readonly name: string;
  /** The protocols that clients may speak to it without translation. */
  readonly protocols: readonly Protocol[];
  /** The adapter's own settings, beside those of every upstream. */
  readonly schema: S;
  request(call: ModelCall, settings: Settings<S>): UpstreamRequest;
  /** Returns the headers that show the platform's credential to the upstream. */
  authorize(credential: string, settings: Settings<S>): Readonly<Record<string, string>>;
  /**
   * Returns further headers that depend on the outgoing request, such as a signature, or on a token that must be fetched. The
   * gateway calls it after `authorize`; it must resolve within 10 s. Absent: there are none.
   */
  sign?(
    request: UnsignedRequest,
    credential: string,
    settings: Settings<S>,
  ): Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>;
  /** How to decode the streams of a vendor that does not send server-sent events; absent: it sends these. */
  readonly framing?: Framing;
  judge(failure: UpstreamFailure): Verdict;
  /** Where the vendor keeps what the platform's credential opens. Calls must not name these hosts as the place of an image or document. */
  readonly opens?: readonly OpenedHost[];
  /** The functions of a dialect of its own, for an adapter without `protocols`. */
  readonly own?: OwnDialect<S>;
}

/** A host, with those below it, whose content a vendor reads with the platform's credential. The upstream's own host always is one. */
export interface OpenedHost {
  /** In lower case, without a port. */
  readonly host: string;
  /** Members of the query that open an address to everybody, so that the vendor needs no credential; absent: none does. */
  readonly signedBy?: readonly string[];
  /** The end of an upstream's host. At others the row does not count. */
  readonly at?: string;
}

/** The functions that a translating adapter has beside those of every adapter. */
export type OwnDialect<S extends Schema = Schema> = Pick<
  TranslatingAdapter<S>,
  'dialect' | 'request' | 'answer' | 'readError'
>;

/** A call for an upstream whose dialect clients do not speak. */
export interface TranslatedCall {
  readonly conversation: Conversation;
  /** The upstream's own name of the model. */
  readonly model: string;
  /** The most output tokens of the model, for an upstream that requires a limit where the call has none. */
  readonly maxOutput: number;
  /** The upstream's name, which marks the signatures that it made. */
  readonly upstream: string;
  /** How to tell the model how much to reason, as the operator configured. Absent: the request never tells it. */
  readonly reasoning?: ReasoningSetting | undefined;
  /** Notes that the request promises less than the client asked for. The client and the usage record are told. */
  weaken?(feature: Feature): void;
}

/** How a model takes its reasoning setting. `effort`: a level such as "low" or "high". `budget`: a number of tokens. */
export type ReasoningSetting = (typeof REASONING_SETTINGS)[number];
export const REASONING_SETTINGS = ['effort', 'budget'] as const;

/** The request that a translating adapter has written. */
export interface TranslatedRequest {
  /** Path and query below the upstream's base URL. */
  readonly path: string;
  /** Headers beside content-type and accept-encoding, which the gateway sets. `authorize` adds the credential. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The whole body as JSON. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** Speaks an upstream's own dialect. It writes requests from a `Conversation` and reads answers into `AnswerEvent`s. */
export interface TranslatingAdapter<S extends Schema = Schema>
  extends Pick<
    UpstreamAdapter<S>,
    'contract' | 'name' | 'schema' | 'authorize' | 'sign' | 'framing' | 'judge' | 'opens'
  > {
  /** The name of its dialect, for people and for signatures. */
  readonly dialect: string;
  /** Writes a request. @throws NotTranslatable for what the dialect has no place for */
  request(call: TranslatedCall, settings: Settings<S>): TranslatedRequest;
  /** Reads the answer of one attempt. */
  answer(call: TranslatedCall): AnswerReader;
  /** Returns the vendor's words in the parsed body of an error. Absent: its `error.message`, `error.code` and `error.type`. */
  readError?(body: unknown): AnswerError;
}

/** An outgoing request without the headers that `sign` adds. */
export interface UnsignedRequest {
  readonly method: string;
  /** The URL with its query, byte for byte as it is sent. The header `host` is the host of this URL. */
  readonly url: URL;
  /** The headers, names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** SHA-256 of the body's bytes, in hex. */
  readonly bodySha256: string;
}

/** Decodes streams that are not server-sent events. */
export interface Framing {
  /** The media type of such an answer, in lower case and without parameters. Other answers are not decoded. */
  readonly mediaType: string;
  /** Begins one stream. */
  open(): FrameDecoder;
}

/** Decodes one stream. It keeps the state, because adapters have none. */
export interface FrameDecoder {
  /**
   * Takes the bytes as they arrive and returns the server-sent events that they complete, as text; may be empty. What it cannot
   * decode becomes an event whose data is no JSON object.
   */
  push(chunk: Buffer): string;
}

/** An adapter in the form in which it is registered. */
export type AnyAdapter = UpstreamAdapter | TranslatingAdapter;

/**
 * An adapter in the form in which a package exports it. Registration checks its other members, so that authors' compilers need
 * not compare adapters with different settings.
 */
export type AdapterExport = Pick<AnyAdapter, 'name' | 'contract'>;

/** Helps TypeScript check an adapter against its own settings. */
export function defineAdapter<const S extends Schema>(adapter: TranslatingAdapter<S>): TranslatingAdapter<S>;
export function defineAdapter<const S extends Schema>(adapter: UpstreamAdapter<S>): UpstreamAdapter<S>;
export function defineAdapter(adapter: AnyAdapter): AnyAdapter {
  return adapter;
}

/** Returns the object of an error. Some upstreams send it in a list. */
export function errorBody(body: unknown): JsonObject {
  return asObject(Array.isArray(body) ? body[0] : body) ?? {};
}

/** Reads `{"error": {"message", "type", "code", "param"}}` and its bare forms, which some upstreams send. */
export function readUsualError(body: unknown): AnswerError {
  const outer = errorBody(body);
  const error = asObject(outer['error']) ?? outer;
  const [detail] = asArray(outer['detail']);
  const message =
    asText(error['message']) ||
    asText(outer['error']) ||
    asText(outer['detail']) ||
    asText(asObject(detail)?.['msg']) ||
    asText(body);
  const textOf = (name: string) => asText(error[name]) || undefined;
  return {
    message: message || 'The upstream sent an error without a message.',
    type: textOf('type') ?? textOf('status'),
    code: textOf('code'),
    param: textOf('param'),
  };
}

/** The version of the Messages protocol that the gateway sends where the client names none. */
export const USUAL_VERSION = '2023-06-01';

/** The headers that name the version. `protoa-` is the service's own spelling of the vendor's prefix. */
const VERSION_HEADERS = ['anthropic-version', 'protoa-version'] as const;

/** Returns the protocol version of a call; undefined in Chat, which has none. */
export function versionOf({ protocol, headers }: Pick<ModelCall, 'protocol' | 'headers'>): string | undefined {
  if (protocol !== 'messages') return undefined;
  for (const name of VERSION_HEADERS) if (headers[name] !== undefined) return headers[name];
  return USUAL_VERSION;
}

/** Whether an upstream takes calls of a version. An upstream that declares no versions takes all. */
export function takesVersion(
  { versions }: { readonly versions?: ReadonlySet<string> | undefined },
  version: string | undefined,
): boolean {
  return versions === undefined || version === undefined || versions.has(version);
}

/** A secret that shows an upstream that a call comes from the platform. */
export interface Credential {
  /** The operator's name of it, or its source, such as `env NAME`. The name is shown and stays when the value changes; the value is never shown. */
  readonly name: string;
  /** Its share of the calls, relative to the upstream's other credentials. */
  readonly weight: number;
  /** The current value; undefined while there is none. Empty: the upstream needs no credential. */
  readonly value: string | undefined;
  /** Why there is no value; undefined when there is one. */
  readonly missing: string | undefined;
}

interface Shown {
  readonly credentials: readonly Credential[];
  readonly credential: Credential;
}

/** Returns a copy of an upstream that uses one of its credentials for the next attempt. */
export function askedWith<U extends Shown>(upstream: U, credential: Credential): U {
  return upstream.credential === credential ? upstream : { ...upstream, credential };
}

/** Returns a copy of an upstream that has this credential only. */
export function pinnedTo<U extends Shown>(upstream: U, credential: Credential): U {
  return upstream.credentials.length === 1 ? upstream : { ...upstream, credential, credentials: [credential] };
}
