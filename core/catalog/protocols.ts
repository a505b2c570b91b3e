/** The protocols that clients speak to the gateway, with the facts that distinguish them. */
export const PROTOCOLS = {
  messages: { title: 'Messages', path: '/v1/messages', conversation: 'messages', limits: ['max_tokens'] },
  chat: {
    title: 'Chat',
    path: '/v1/chat/completions',
    conversation: 'messages',
    limits: ['max_tokens', 'max_completion_tokens'],
  },
  responses: {
    title: 'Responses',
    path: '/v1/responses',
    operations: ['/compact'],
    conversation: 'input',
    limits: ['max_output_tokens'],
    webSocket: true,
  },
  embeddings: { title: 'Embeddings', path: '/v1/embeddings', conversation: 'input', limits: [] },
} as const satisfies Readonly<Record<string, ProtocolFacts>>;

interface ProtocolFacts {
  /** The name of the protocol in documents. */
  readonly title: string;
  /** The path of the protocol's calls, without the prefix of a routing strategy. */
  readonly path: `/v1/${string}`;
  /** The path suffixes of other calls in the same dialect, which are billed like the calls without a suffix. */
  readonly operations?: readonly string[];
  /** The member of a request that contains the conversation. */
  readonly conversation: string;
  /**
   * The request members that limit an answer's output; empty if the protocol has none. If a call has none of them, the gateway adds the
   * first, because every upstream reads it.
   */
  readonly limits: readonly string[];
  /** Whether clients may send their calls over a WebSocket at the same URL as over HTTP. */
  readonly webSocket?: true;
}

/** The prefixes of paths, one for each routing strategy. Clients request models and stored responses below the base address of their calls. */
export const PATH_PREFIXES = ['', '/default', '/quality', '/speed', '/cost'] as const;

/** A protocol that clients speak. */
export type Protocol = keyof typeof PROTOCOLS;

export const PROTOCOL_NAMES = Object.keys(PROTOCOLS) as readonly Protocol[] as readonly [Protocol, ...Protocol[]];

/** The protocols that the gateway translates into each other, best target first: the one that can express most comes first. */
export const TRANSLATED = ['responses', 'messages', 'chat'] as const satisfies readonly Protocol[];

/** Returns whether answers have output tokens and may be streamed. Embeddings are numbers, so only their input is counted. */
export function hasOutput(protocol: Protocol): boolean {
  return protocol !== 'embeddings';
}

/** Returns the protocol of a call by its path, with or without the prefix of a strategy. */
export function protocolOf(path: string): Protocol {
  return placeOf(path)?.protocol ?? 'messages';
}

/** Returns the suffix of a call's path after its protocol, such as `/compact`; undefined if it has none. */
export function operationOf(path: string): string | undefined {
  return placeOf(path)?.operation;
}

function placeOf(path: string): CallPlace | undefined {
  for (const place of PLACES) if (path.endsWith(place.ending)) return place;
  return undefined;
}

interface CallPlace {
  readonly ending: string;
  readonly protocol: Protocol;
  readonly operation?: string;
}

const PLACES: readonly CallPlace[] = PROTOCOL_NAMES.flatMap((protocol) => {
  const { path, operations = [] }: ProtocolFacts = PROTOCOLS[protocol];
  return [
    { ending: path, protocol },
    ...operations.map((operation) => ({ ending: path + operation, protocol, operation })),
  ];
});

/** Returns whether clients may send calls of a path over a WebSocket. */
export function isSocketPath(path: string): boolean {
  const { path: own, webSocket }: ProtocolFacts = PROTOCOLS[protocolOf(path)];
  return webSocket === true && path.endsWith(own);
}

/** Returns a record with one value for each protocol. */
export function forEachProtocol<T>(make: (protocol: Protocol) => T): Readonly<Record<Protocol, T>> {
  return Object.fromEntries(PROTOCOL_NAMES.map((name) => [name, make(name)])) as Record<Protocol, T>;
}

/** Returns a list of paths, as text for people. Clients can call a model at these paths if the model speaks these protocols. */
export function servedAt(protocols: Iterable<Protocol>): string {
  const paths = [...new Set(protocols)].map((name) => PROTOCOLS[name].path);
  return new Intl.ListFormat('en-GB', { type: 'conjunction' }).format(paths);
}
