import { asArray, asObject, asText, type JsonObject } from '../base/json-values';
import type { Schema, Settings } from '../base/settings';
import type { AnswerError, AnswerReader } from './answer';
import type { Conversation, Feature } from './conversation';
import type { Protocol } from './protocols';
import type { Usage } from './usage';

export type { SseEvent } from './answer';
export type { Protocol } from './protocols';

/** The parts of a call that the gateway passes to an adapter. */
export interface ModelCall {
  readonly protocol: Protocol;
  /** The suffix of the call's path after its protocol, such as `/compact`; absent if it has none. */
  readonly operation?: string | undefined;
  /** The upstream's own name of the model. */
  readonly model: string;
  readonly stream: boolean;
  /** The unchanged query string, including its `?`; empty if there is none. */
  readonly query: string;
  /** The headers that the gateway may forward: content-type, accept and those with the vendor's prefix. Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The raw JSON text of top-level members, by member name with JSON escapes decoded. Values above 4 KiB are absent. */
  readonly members: ReadonlyMap<string, string>;
  /** Whether the upstream supports `stream_options.include_usage`. */
  readonly streamUsage: boolean;
}

/** One change to the top level of the request body. All other bytes stay unchanged. */
export type BodyEdit =
  | { readonly member: string; readonly set: string /* JSON text; the member is appended when it is not there */ }
  | { readonly member: string; readonly drop: true };

/** The request that an adapter writes for its upstream. */
export interface UpstreamRequest {
  /** The path and query below the upstream's base URL, for example `/v1/messages?beta=true`. */
  readonly path: string;
  /** Request headers of the adapter. The gateway itself adds content-type and accept-encoding; `authorize` adds the credential. */
  readonly headers: Readonly<Record<string, string>>;
  readonly edits: readonly BodyEdit[];
}

/** An unsuccessful answer, or an error event before any content. */
export interface UpstreamFailure {
  readonly protocol: Protocol;
  /** The HTTP status; 200 if the failure was an event of a stream. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The parsed body or event data; undefined if it is not JSON or larger than 64 KiB. */
  readonly body: unknown;
}

/** How the gateway reacts to a failure: try the next candidate, relay the failure, or try only candidates with a larger context window. */
export type Verdict = 'next' | 'relay' | 'larger-context';

/** Facts of one stream event that routing, metering and the detection of the stream's end need. An absent flag means "no". */
export interface EventNote {
  /** Whether text, reasoning, a refusal or tool input begins or continues. After such an event, the gateway cannot try another upstream. */
  readonly content?: boolean;
  /** The UTF-8 bytes of text, reasoning and tool arguments in this event. */
  readonly contentBytes?: number;
  /** The usage that this event reports, cumulative for the call so far. */
  readonly usage?: Usage;
  /** Whether the event has a stop reason: its choice is then complete even if nothing follows. `FinishTracker` knows when all choices are complete. */
  readonly finish?: boolean;
  /** The indexes of the choices (`n`) whose stop reason this event has; absent if the protocol has only one choice. */
  readonly finishedChoices?: readonly number[];
  /**
   * Whether this event has the final usage at `usageAt`, where the gateway may add `cost`. In Chat, the gateway may move the usage into the
   * event with the stop reason. It then drops the usage event if it has neither content nor a stop reason.
   */
  readonly finalUsage?: boolean;
  /** The path to the usage in the event's data; absent: the top-level member `usage`. */
  readonly usageAt?: readonly string[];
  /** Whether this event is the protocol's end of the stream (`message_stop`, `[DONE]`, `response.completed`). */
  readonly done?: boolean;
  /** The error that the upstream reports inside the stream. The gateway passes its `body` to `judge`. */
  readonly error?: { readonly body: unknown };
  /** Whether the event's data is not a JSON object. */
  readonly malformed?: boolean;
}

/**
 * The members of events that only continue the text. If an event differs from an earlier one only in these members, both events mean the
 * same to the gateway. The gateway then does not parse the later event and only counts its text in UTF-8 bytes.
 */
export interface Deltas {
  /** The members whose text counts as output, at any depth of the data. No other member has such text. */
  readonly texts: readonly string[];
  /** The members whose texts and numbers the gateway ignores. */
  readonly ignored?: readonly string[];
}

/**
 * Speaks to an upstream in a protocol that clients also use. The gateway relays calls of this protocol and translates calls of other
 * protocols into it. An adapter only writes requests and judges failures. The gateway handles sockets, timeouts, retries, framing, counting
 * and pricing, and it reads the answers of each protocol itself.
 */
export interface UpstreamAdapter<S extends Schema = Schema> {
  readonly contract: 'upstream/1';
  /** The adapter's name, which upstreams in serviceEndpoints set as `adapter:`. */
  readonly name: string;
  /** The protocols that clients may use with the adapter without translation. */
  readonly protocols: readonly Protocol[];
  /** The schema of the adapter's own settings, in addition to those of every upstream. */
  readonly schema: S;
  request(call: ModelCall, settings: Settings<S>): UpstreamRequest;
  /** Returns the headers that contain the platform's credential for the upstream. */
  authorize(credential: string, settings: Settings<S>): Readonly<Record<string, string>>;
  /**
   * Returns additional headers that depend on the outgoing request, such as a signature, or headers with a token that must be fetched. The
   * gateway calls this function after `authorize`; it must resolve within 10 s. An adapter without this function adds only the headers of
   * `authorize`.
   */
  sign?(
    request: UnsignedRequest,
    credential: string,
    settings: Settings<S>,
  ): Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>;
  /** How to decode streams that are not server-sent events; absent if the vendor sends server-sent events. */
  readonly framing?: Framing;
  judge(failure: UpstreamFailure): Verdict;
  /** The hosts whose content the platform's credential opens. The gateway refuses calls that name an image or document on one of them. */
  readonly opens?: readonly OpenedHost[];
  /** The functions for a dialect that clients cannot use; set for adapters without `protocols`. */
  readonly own?: OwnDialect<S>;
}

/** A host, including its subdomains, whose content a vendor reads with the platform's credential. The upstream's own host always counts as one. */
export interface OpenedHost {
  /** The host name in lower case, without a port. */
  readonly host: string;
  /** The query members that make a URL readable without the platform's credential, such as a signature; absent if there are none. */
  readonly signedBy?: readonly string[];
  /** The end of the host names of the upstreams to which this entry applies; absent if it applies to all upstreams. */
  readonly at?: string;
}

/** The functions that a translating adapter has in addition to those of every adapter. */
export type OwnDialect<S extends Schema = Schema> = Pick<
  TranslatingAdapter<S>,
  'dialect' | 'request' | 'answer' | 'readError'
>;

/** A call in the form for an upstream whose dialect no client speaks. The adapter writes its request from the `conversation`. */
export interface TranslatedCall {
  readonly conversation: Conversation;
  /** The upstream's own name of the model. */
  readonly model: string;
  /** The most output tokens of the model. The adapter needs it if the upstream requires a limit and the call has none. */
  readonly maxOutput: number;
  /** The upstream's name, which marks the signatures that the upstream made. */
  readonly upstream: string;
  /** How the request sets the amount of reasoning, as the operator configured; absent if the request must not set it. */
  readonly reasoning?: ReasoningSetting | undefined;
  /** Records that the adapter wrote a weaker request than the client asked for. The gateway reports this to the client and in the usage record. */
  weaken?(feature: Feature): void;
}

/** How a model accepts the amount of reasoning. `effort`: a level such as "low" or "high". `budget`: a number of tokens. */
export type ReasoningSetting = (typeof REASONING_SETTINGS)[number];
export const REASONING_SETTINGS = ['effort', 'budget'] as const;

/** The request that a translating adapter has written. */
export interface TranslatedRequest {
  /** The path and query below the upstream's base URL. */
  readonly path: string;
  /** Request headers of the adapter. The gateway itself adds content-type and accept-encoding; `authorize` adds the credential. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The whole request body, which the gateway sends as JSON. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** Speaks an upstream's own dialect. It writes requests from a `Conversation` and reads answers into `AnswerEvent`s. */
export interface TranslatingAdapter<S extends Schema = Schema>
  extends Pick<
    UpstreamAdapter<S>,
    'contract' | 'name' | 'schema' | 'authorize' | 'sign' | 'framing' | 'judge' | 'opens'
  > {
  /** The name of the adapter's dialect, for messages to people and for signatures. */
  readonly dialect: string;
  /** Writes a request. @throws NotTranslatable for a feature that the dialect cannot express */
  request(call: TranslatedCall, settings: Settings<S>): TranslatedRequest;
  /** Returns a reader for the answer of one attempt. */
  answer(call: TranslatedCall): AnswerReader;
  /**
   * Reads the vendor's message, code and type from the parsed body of an error. Without this function, the gateway reads `error.message`,
   * `error.code` and `error.type`.
   */
  readError?(body: unknown): AnswerError;
}

/** An outgoing request before `sign` adds its headers. */
export interface UnsignedRequest {
  readonly method: string;
  /** The URL with its query, byte for byte as the gateway sends it. The header `host` is the host of this URL. */
  readonly url: URL;
  /** The request headers; names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The SHA-256 hash of the body, in hex. */
  readonly bodySha256: string;
}

/** Decodes streams that are not server-sent events. */
export interface Framing {
  /** The media type of the streams to decode, in lower case and without parameters. The gateway does not decode answers of other types. */
  readonly mediaType: string;
  /** Returns a decoder for one stream. */
  open(): FrameDecoder;
}

/** Decodes one stream. The decoder keeps the stream's state, because adapters are stateless. */
export interface FrameDecoder {
  /**
   * Decodes bytes as they arrive. Returns the text of the server-sent events that they complete, or an empty text. Bytes that it cannot
   * decode become an event whose data is no JSON object.
   */
  push(chunk: Buffer): string;
}

/** An adapter in the form in which the gateway registers it. */
export type AnyAdapter = UpstreamAdapter | TranslatingAdapter;

/**
 * An adapter as a package exports it, typed by name and contract only. The gateway checks the other members at registration. The authors'
 * compilers then need not compare the types of adapters that have different settings.
 */
export type AdapterExport = Pick<AnyAdapter, 'name' | 'contract'>;

/** Returns the adapter unchanged. It makes TypeScript check the adapter against its own settings. */
export function defineAdapter<const S extends Schema>(adapter: TranslatingAdapter<S>): TranslatingAdapter<S>;
export function defineAdapter<const S extends Schema>(adapter: UpstreamAdapter<S>): UpstreamAdapter<S>;
export function defineAdapter(adapter: AnyAdapter): AnyAdapter {
  return adapter;
}

/** Returns the error object of a body. Some upstreams send a list that contains it. */
export function errorBody(body: unknown): JsonObject {
  return asObject(Array.isArray(body) ? body[0] : body) ?? {};
}

/** Reads an error of the form `{"error": {"message", "type", "code", "param"}}`, and the same without the outer `error`, which some upstreams send. */
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

/** The version of the Messages protocol that the gateway sends if the client names none. */
export const USUAL_VERSION = '2023-06-01';

/** The headers that may contain the version of the Messages protocol. `protoa-` is the gateway's own prefix instead of the vendor's `anthropic-`. */
const VERSION_HEADERS = ['anthropic-version', 'protoa-version'] as const;

/** Returns the protocol version of a call; undefined for all protocols but Messages, because they have none. */
export function versionOf({ protocol, headers }: Pick<ModelCall, 'protocol' | 'headers'>): string | undefined {
  if (protocol !== 'messages') return undefined;
  for (const name of VERSION_HEADERS) if (headers[name] !== undefined) return headers[name];
  return USUAL_VERSION;
}

/** Returns whether an upstream accepts calls of a version. An upstream without declared versions accepts all. */
export function takesVersion(
  { versions }: { readonly versions?: ReadonlySet<string> | undefined },
  version: string | undefined,
): boolean {
  return versions === undefined || version === undefined || versions.has(version);
}

/** A secret with which an upstream recognizes calls of the platform. */
export interface Credential {
  /** The credential's name: chosen by the operator, or else its source, such as `env NAME`. Operators see it, but never the value, which may change. */
  readonly name: string;
  /** The credential's share of the calls, relative to the upstream's other credentials. */
  readonly weight: number;
  /** The credential's current value; undefined if it has none now. An empty text means that the upstream needs no credential. */
  readonly value: string | undefined;
  /** Why `value` is undefined; undefined if it is set. */
  readonly missing: string | undefined;
}

interface Shown {
  readonly credentials: readonly Credential[];
  readonly credential: Credential;
}

/** Returns a copy of an upstream whose next attempt uses the given one of its credentials. */
export function askedWith<U extends Shown>(upstream: U, credential: Credential): U {
  return upstream.credential === credential ? upstream : { ...upstream, credential };
}

/** Returns a copy of an upstream in which the given credential is the only one. */
export function pinnedTo<U extends Shown>(upstream: U, credential: Credential): U {
  return upstream.credentials.length === 1 ? upstream : { ...upstream, credential, credentials: [credential] };
}
