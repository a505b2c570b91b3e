import { PROTOCOLS, type Protocol } from '../../core/catalog/protocols';
import type { Random } from './random';

/** A model as the vendor publishes it and as the gateway is configured. Amounts are USD per million tokens. */
export const CONTEXT = 20_000;
export const MAX_OUTPUT = 4_000;
export const IMAGE_TOKENS = 1_600;
export const TOOL_OVERHEAD = 500;
export const FACTOR = 1.35;
export const ABOVE_TOKENS = 10_000;

export type Meter = 'input' | 'cacheRead' | 'cacheWrite' | 'cacheWrite1h' | 'output';
export type Rates = Readonly<Record<Meter, number>>;

export const RATES: Rates = { input: 3, cacheRead: 0.3, cacheWrite: 3.75, cacheWrite1h: 6, output: 15 };
export const RATES_ABOVE: Rates = { input: 6, cacheRead: 0.6, cacheWrite: 7.5, cacheWrite1h: 12, output: 22.5 };
export const TIERS: Readonly<Record<string, number>> = { priority: 2, flex: 0.5 };
/** The price of one search in USD. */
export const SEARCH_PRICE = 0.01;

const MODEL_SETTINGS = {
  context: CONTEXT,
  maxOutput: MAX_OUTPUT,
  tokenizerFactor: FACTOR,
  imageTokens: IMAGE_TOKENS,
  toolOverheadTokens: TOOL_OVERHEAD,
  price: {
    ...RATES,
    above: { tokens: ABOVE_TOKENS, ...RATES_ABOVE },
    tiers: { priority: { factor: 2 }, flex: { factor: 0.5 } },
    pieces: { webSearch: SEARCH_PRICE },
  },
};

const { above: _, ...LEVEL_PRICE } = MODEL_SETTINGS.price;

/** Settings of models without a threshold. The hold already has the dearest price, so that only the token count can be too small. */
const LEVEL_SETTINGS = { ...MODEL_SETTINGS, price: LEVEL_PRICE };

/** The tier of each model's answers. `moody` answers with the tier `priority` although the request does not ask for it. */
const ANSWERING = {
  plain: MODEL_SETTINGS,
  moody: { ...MODEL_SETTINGS, mayAnswerWith: { tiers: ['priority'] } },
  level: LEVEL_SETTINGS,
};

export const MODELS = {
  ...ANSWERING,
  embed: { ...LEVEL_SETTINGS, maxOutput: 0, estimatedMaxTokens: 0, price: { input: RATES.input, output: 0 } },
};

/** The models whose price has no threshold. */
export const LEVEL_NAMES: readonly unknown[] = ['level', 'embed'];

const MODEL_NAMES = Object.keys(ANSWERING);

export type Body = Readonly<Record<string, unknown>>;

/** A request as its client builds it. */
export interface Ordeal {
  readonly protocol: Protocol;
  readonly path: string;
  readonly body: Body;
}

const WORDS =
  'the model gateway holds what a call can cost and settles what it did cost after the answer has ended'.split(' ');

const TEXTS: readonly ((random: Random) => string)[] = [
  (random) => Array.from({ length: random.below(400) }, () => random.pick(WORDS)).join(' '),
  (random) => JSON.stringify(Array.from({ length: random.below(40) }, (_, id) => ({ id, at: random.below(1e9) }))),
  (random) => Array.from({ length: random.below(600) }, () => String(random.below(10))).join(random.pick(['', ' '])),
  (random) =>
    Array.from({ length: random.below(200) }, () => String.fromCodePoint(0x4e00 + random.below(0x5000))).join(''),
  (random) =>
    Array.from({ length: random.below(60) }, () => String.fromCodePoint(0x1f300 + random.below(0x300))).join(''),
  (random) => Array.from({ length: random.below(300) }, () => String.fromCharCode(33 + random.below(90))).join(''),
  (random) =>
    Array.from({ length: random.below(150) }, () => `\n\t${random.pick(['{', '}', '"', '\\', ' '])}`).join(''),
];

const textOf = (random: Random) => random.pick(TEXTS)(random);
const oneIn = (random: Random, many: number) => random.below(many) === 0;

type Conversing = Exclude<Protocol, 'embeddings'>;

/** Draws a call of a client that tries everything that the gateway forwards. The vendor identifies the call by `id`. */
export function ordeal(random: Random, id: string): Ordeal {
  const protocol = random.pick(['messages', 'chat', 'responses', 'responses', 'embeddings'] as const);
  const { path } = PROTOCOLS[protocol];
  if (protocol === 'embeddings') return { protocol, path, body: embeddingsBody(random, id) };
  if (protocol === 'responses' && oneIn(random, 8))
    return { protocol, path: `${path}/compact`, body: compactBody(random, id) };
  return {
    protocol,
    path,
    body: {
      model: random.pick(MODEL_NAMES),
      [PROTOCOLS[protocol].conversation]: conversation(random, protocol),
      stream: oneIn(random, 2),
      ...limits(random, protocol),
      ...toolMembers(random, protocol),
      ...(oneIn(random, 6) && { service_tier: random.pick(['priority', 'flex']) }),
      ...(oneIn(random, 20) && { strange_member: { reads: 'something that is not here' } }),
      ...MEMBERS[protocol](random, id),
    },
  };
}

function conversation(random: Random, protocol: Conversing): readonly object[] {
  const turns = Array.from({ length: random.below(3) }, (_, at) => ({
    role: at % 2 === 0 ? 'user' : 'assistant',
    content: textOf(random) || 'a',
  }));
  const text = { type: protocol === 'responses' ? 'input_text' : 'text', text: textOf(random) };
  return [
    ...turns.slice(0, turns.length - (turns.length % 2)),
    ...(protocol === 'responses' && oneIn(random, 4) ? toolTurn(random) : []),
    { role: 'user', content: [text, ...extraParts(random, protocol)] },
  ];
}

/** Makes the members that a Responses client returns for a tool that it runs. */
function toolTurn(random: Random): readonly object[] {
  return [
    { type: 'function_call', call_id: 'call_1', name: 'look', arguments: JSON.stringify({ at: textOf(random) }) },
    { type: 'function_call_output', call_id: 'call_1', output: textOf(random) },
  ];
}

function limits(random: Random, protocol: Conversing): object {
  if (protocol === 'messages') return { max_tokens: 1 + random.below(6_000) };
  return Object.fromEntries(
    PROTOCOLS[protocol].limits.filter(() => oneIn(random, 2)).map((name) => [name, 1 + random.below(6_000)]),
  );
}

const MEMBERS: Readonly<Record<Conversing, (random: Random, id: string) => object>> = {
  messages: (random, id) => ({
    metadata: { user_id: id },
    ...(oneIn(random, 3) && { system: textOf(random) }),
    ...(oneIn(random, 12) && { context_management: { edits: [{ type: 'compact_20260112' }] } }),
    ...(oneIn(random, 3) && { cache_control: { type: 'ephemeral', ...(oneIn(random, 2) && { ttl: '1h' }) } }),
  }),
  chat: (random, id) => ({
    user: id,
    ...(oneIn(random, 4) && { n: 1 + random.below(4) }),
    ...(oneIn(random, 8) && { prediction: { type: 'content', content: textOf(random) } }),
    ...(oneIn(random, 8) && { web_search_options: { search_context_size: 'low' } }),
  }),
  responses: (random, id) => ({
    user: id,
    store: oneIn(random, 4),
    reasoning: { effort: random.pick(['low', 'high']) },
    ...(oneIn(random, 3) && { instructions: textOf(random) }),
    ...(oneIn(random, 12) && { context_management: [{ type: 'compaction', compact_threshold: 1_000 }] }),
    ...(oneIn(random, 6) && { max_tool_calls: random.below(8) }),
  }),
};

function compactBody(random: Random, id: string): Body {
  return {
    model: random.pick(MODEL_NAMES),
    input: oneIn(random, 4) ? textOf(random) : conversation(random, 'responses'),
    user: id,
    ...(oneIn(random, 2) && { instructions: textOf(random) }),
    ...(oneIn(random, 4) && { max_output_tokens: 1 + random.below(6_000) }),
  };
}

/** Draws texts, or tokens by their numbers. */
function embeddingsBody(random: Random, id: string): Body {
  const text = () => textOf(random) || 'a';
  const tokens = () => Array.from({ length: 1 + random.below(50) }, () => random.below(100_000));
  const many = <T>(make: () => T) => Array.from({ length: 1 + random.below(8) }, make);
  return {
    model: 'embed',
    input: random.pick([text, tokens, () => many(text), () => many(tokens)])(),
    user: id,
    ...(oneIn(random, 4) && { dimensions: 1 + random.below(2_000) }),
    ...(oneIn(random, 20) && { strange_member: { reads: 'something that is not here' } }),
  };
}

function toolMembers(random: Random, protocol: Conversing): object {
  const tools = [
    ...(oneIn(random, 4) ? [toolOf(random, protocol)] : []),
    ...(protocol !== 'chat' && oneIn(random, 5) ? [searchOf(random, protocol)] : []),
  ];
  return tools.length === 0 ? {} : { tools };
}

function toolOf(random: Random, protocol: Conversing): object {
  const schema = {
    type: 'object',
    properties: { [random.pick(WORDS)]: { type: 'string', description: textOf(random) } },
  };
  const described = { name: 'look', description: textOf(random) };
  if (protocol === 'messages') return { ...described, input_schema: schema };
  if (protocol === 'responses') return { type: 'function', ...described, parameters: schema };
  return { type: 'function', function: { ...described, parameters: schema } };
}

/** Draws a search that runs at the vendor, with or without a limit. */
function searchOf(random: Random, protocol: Conversing): object {
  if (protocol === 'responses') return { type: random.pick(['web_search', 'web_search_preview']) };
  const limit = oneIn(random, 2) && { max_uses: random.below(12) };
  return { type: 'web_search_20250305', name: 'web_search', ...limit };
}

/** Returns whether a call offers a search without a limit of uses. */
export function offersSearch({ body }: Ordeal): boolean {
  const tools = (body['tools'] ?? []) as readonly { readonly type?: string; readonly max_uses?: number }[];
  const search = tools.find(({ type }) => type?.startsWith('web_search'));
  return search !== undefined && search.max_uses === undefined && body['max_tool_calls'] === undefined;
}

const PIXEL = Buffer.alloc(300, 7).toString('base64');

function extraParts(random: Random, protocol: Conversing): readonly object[] {
  if (!oneIn(random, 5)) return [];
  const url = 'https://example.com/large';
  const source = (type: string) => (type === 'url' ? { type, url } : { type, media_type: 'image/png', data: PIXEL });
  if (protocol === 'messages')
    return [{ type: random.pick(['image', 'document']), source: source(random.pick(['url', 'base64'])) }];
  const image = random.pick([url, `data:image/png;base64,${PIXEL}`]);
  if (protocol === 'responses')
    return [
      oneIn(random, 3)
        ? { type: 'input_file', ...random.pick([{ file_data: PIXEL }, { file_url: url }]) }
        : { type: 'input_image', image_url: image },
    ];
  return [
    oneIn(random, 3) ? { type: 'file', file: { file_data: PIXEL } } : { type: 'image_url', image_url: { url: image } },
  ];
}
