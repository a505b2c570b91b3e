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
  /** The protocol's name in documents. */
  readonly title: string;
  /** The path without the prefix of a strategy. */
  readonly path: `/v1/${string}`;
  /** The suffixes of the path for other calls in the same dialect, which are billed alike. */
  readonly operations?: readonly string[];
  /** The member of a request that has the conversation. */
  readonly conversation: string;
  /**
   * The members that limit an answer; empty: calls have no limit. Every upstream reads the first, so the gateway writes that one
   * if a call names none.
   */
  readonly limits: readonly string[];
  /** Whether clients may also send their calls over a WebSocket, at the same address. */
  readonly webSocket?: true;
}

/** A protocol that clients speak. */
export type Protocol = keyof typeof PROTOCOLS;

export const PROTOCOL_NAMES = Object.keys(PROTOCOLS) as readonly Protocol[] as readonly [Protocol, ...Protocol[]];

/** The protocols that are translated into each other, in the order of preference: the one that carries most comes first. */
export const TRANSLATED = ['responses', 'messages', 'chat'] as const satisfies readonly Protocol[];

/** Whether answers have output tokens and may be streamed. Embeddings are numbers: only their input is counted. */
export function hasOutput(protocol: Protocol): boolean {
  return protocol !== 'embeddings';
}

/** Returns the protocol of a call's path, with any strategy before it. */
export function protocolOf(path: string): Protocol {
  return placeOf(path)?.protocol ?? 'messages';
}

/** Returns the suffix of a call's path after its protocol, such as `/compact`; undefined without one. */
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

/** Whether calls of a path may come over a WebSocket. */
export function isSocketPath(path: string): boolean {
  const { path: own, webSocket }: ProtocolFacts = PROTOCOLS[protocolOf(path)];
  return webSocket === true && path.endsWith(own);
}

/** Returns one value for each protocol. */
export function forEachProtocol<T>(make: (protocol: Protocol) => T): Readonly<Record<Protocol, T>> {
  return Object.fromEntries(PROTOCOL_NAMES.map((name) => [name, make(name)])) as Record<Protocol, T>;
}

/** Returns a sentence for people: where to call a model that does not speak the protocol of a call. */
export function servedAt(protocols: Iterable<Protocol>): string {
  const paths = [...new Set(protocols)].map((name) => PROTOCOLS[name].path);
  return new Intl.ListFormat('en-GB', { type: 'conjunction' }).format(paths);
}
