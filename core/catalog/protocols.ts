/** The protocols that clients speak to us: each in one place, with what is different between them in a word or two. */
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

export interface ProtocolFacts {
  /** As documents say it. */
  readonly title: string;
  /** Without the prefix of a strategy. */
  readonly path: `/v1/${string}`;
  /** What may stand behind the path: other calls in the same dialect, which are billed alike. */
  readonly operations?: readonly string[];
  /** The member of a request in which the conversation stands. */
  readonly conversation: string;
  /** The members that limit an answer. Every upstream reads the first: it is written where a call names none. None: calls have no limit. */
  readonly limits: readonly string[];
  /** Clients may also bring their calls over a WebSocket, at the same address. */
  readonly webSocket?: true;
}

/** A protocol that clients speak. */
export type Protocol = keyof typeof PROTOCOLS;

export const PROTOCOL_NAMES = Object.keys(PROTOCOLS) as readonly Protocol[] as readonly [Protocol, ...Protocol[]];

/** Protocols that are translated into each other, the one that carries most first: of several that an upstream speaks, that is chosen. */
export const TRANSLATED = ['responses', 'messages', 'chat'] as const satisfies readonly Protocol[];

/** Whether answers have output tokens and may be streamed. Embeddings are numbers: only their input is counted. */
export function hasOutput(protocol: Protocol): boolean {
  return protocol !== 'embeddings';
}

/** Returns the protocol of a call's path, whatever strategy stands before it. */
export function protocolOf(path: string): Protocol {
  return placeOf(path)?.protocol ?? 'messages';
}

/** Returns what stands behind the path of its protocol in a call's path, such as `/compact`; undefined where nothing does. */
export function operationOf(path: string): string | undefined {
  return placeOf(path)?.operation;
}

function placeOf(path: string): { readonly protocol: Protocol; readonly operation?: string } | undefined {
  for (const protocol of PROTOCOL_NAMES) {
    const { path: own, operations = [] }: ProtocolFacts = PROTOCOLS[protocol];
    if (path.endsWith(own)) return { protocol };
    const operation = operations.find((each) => path.endsWith(own + each));
    if (operation !== undefined) return { protocol, operation };
  }
  return undefined;
}

/** Whether calls of a path may come over a WebSocket. */
export function isSocketPath(path: string): boolean {
  const { path: own, webSocket }: ProtocolFacts = PROTOCOLS[protocolOf(path)];
  return webSocket === true && path.endsWith(own);
}

/** Returns one value for each protocol. */
export function forEachProtocol<T>(make: (protocol: Protocol) => T): Readonly<Record<Protocol, T>> {
  return Object.fromEntries(PROTOCOL_NAMES.map((name) => [name, make(name)])) as Record<Protocol, T>;
}

/** Returns where a model is served that does not speak the protocol of a call, for a person to read. */
export function servedAt(protocols: Iterable<Protocol>): string {
  const paths = [...new Set(protocols)].map((name) => PROTOCOLS[name].path);
  return new Intl.ListFormat('en-GB', { type: 'conjunction' }).format(paths);
}
