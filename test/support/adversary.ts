import { countTokens as countCl100k } from 'gpt-tokenizer/encoding/cl100k_base';
import { countTokens as countO200k } from 'gpt-tokenizer/encoding/o200k_base';
import type { TestProtocol } from './calls';
import type { Random } from './random';

/** What a vendor publishes of a model, and how its gateway is configured. Amounts are USD per million tokens. */
export const CONTEXT = 20_000;
export const MAX_OUTPUT = 4_000;
export const IMAGE_TOKENS = 1_600;
export const TOOL_OVERHEAD = 500;
export const FACTOR = 1.35;
const ABOVE_TOKENS = 10_000;

type Meter = 'input' | 'cacheRead' | 'cacheWrite' | 'cacheWrite1h' | 'output';
type Rates = Readonly<Record<Meter, number>>;

const RATES: Rates = { input: 3, cacheRead: 0.3, cacheWrite: 3.75, cacheWrite1h: 6, output: 15 };
const RATES_ABOVE: Rates = { input: 6, cacheRead: 0.6, cacheWrite: 7.5, cacheWrite1h: 12, output: 22.5 };
const TIERS: Readonly<Record<string, number>> = { priority: 2, flex: 0.5 };

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
  },
};

const { above: _, ...LEVEL_PRICE } = MODEL_SETTINGS.price;

/** Without a threshold the dearest price is the one that is charged: only the count of tokens can be too small. */
const LEVEL_SETTINGS = { ...MODEL_SETTINGS, price: LEVEL_PRICE };

/** The models of the vendor: `moody` answers with the tier `priority` although nobody asked. */
export const MODELS = {
  plain: MODEL_SETTINGS,
  moody: { ...MODEL_SETTINGS, mayAnswerWith: { tiers: ['priority'] } },
  level: LEVEL_SETTINGS,
};

const MODEL_NAMES = Object.keys(MODELS);

/** A request as its client builds it, with what the vendor may count for it. */
export interface Ordeal {
  readonly protocol: TestProtocol;
  readonly body: Readonly<Record<string, unknown>>;
}

interface Pass {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** The most that a truthful vendor may report, in its own words, and what it charges for that. */
export interface Bill {
  readonly usage: Readonly<Record<string, unknown>>;
  readonly tier: string | undefined;
  /** In units of 1e-8 USD, rounded up once. */
  readonly costE8: bigint;
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

/** A call of somebody who tries everything that the gateway forwards. `id` is what the vendor knows it by. */
export function ordeal(random: Random, id: string): Ordeal {
  const protocol = random.pick(['messages', 'chat'] as const);
  const content = [{ type: 'text', text: textOf(random) }, ...extraParts(random, protocol)];
  const turns = Array.from({ length: random.below(3) }, (_, at) => ({
    role: at % 2 === 0 ? 'user' : 'assistant',
    content: textOf(random) || 'a',
  }));
  return {
    protocol,
    body: {
      model: random.pick(MODEL_NAMES),
      messages: [...turns.slice(0, turns.length - (turns.length % 2)), { role: 'user', content }],
      stream: oneIn(random, 2),
      ...limits(random, protocol),
      ...(oneIn(random, 4) && { tools: [toolOf(random, protocol)] }),
      ...(oneIn(random, 6) && { service_tier: random.pick(['priority', 'flex']) }),
      ...(oneIn(random, 20) && { strange_member: { reads: 'something that is not here' } }),
      ...(protocol === 'messages' ? messagesMembers(random, id) : chatMembers(random, id)),
    },
  };
}

function limits(random: Random, protocol: TestProtocol): object {
  if (protocol === 'messages') return { max_tokens: 1 + random.below(6_000) };
  return {
    ...(oneIn(random, 2) && { max_tokens: 1 + random.below(6_000) }),
    ...(oneIn(random, 2) && { max_completion_tokens: 1 + random.below(6_000) }),
  };
}

function messagesMembers(random: Random, id: string): object {
  return {
    metadata: { user_id: id },
    ...(oneIn(random, 3) && { system: textOf(random) }),
    ...(oneIn(random, 12) && { context_management: { edits: [{ type: 'compact_20260112' }] } }),
    ...(oneIn(random, 3) && { cache_control: { type: 'ephemeral', ...(oneIn(random, 2) && { ttl: '1h' }) } }),
  };
}

function chatMembers(random: Random, id: string): object {
  return {
    user: id,
    ...(oneIn(random, 4) && { n: 1 + random.below(4) }),
    ...(oneIn(random, 8) && { prediction: { type: 'content', content: textOf(random) } }),
  };
}

function toolOf(random: Random, protocol: TestProtocol): object {
  const schema = {
    type: 'object',
    properties: { [random.pick(WORDS)]: { type: 'string', description: textOf(random) } },
  };
  return protocol === 'messages'
    ? { name: 'look', description: textOf(random), input_schema: schema }
    : { type: 'function', function: { name: 'look', description: textOf(random), parameters: schema } };
}

const PIXEL = Buffer.alloc(300, 7).toString('base64');

function extraParts(random: Random, protocol: TestProtocol): readonly object[] {
  if (!oneIn(random, 5)) return [];
  const url = 'https://example.com/large';
  const source = (type: string) => (type === 'url' ? { type, url } : { type, media_type: 'image/png', data: PIXEL });
  if (protocol === 'messages')
    return [{ type: random.pick(['image', 'document']), source: source(random.pick(['url', 'base64'])) }];
  const image = random.pick([url, `data:image/png;base64,${PIXEL}`]);
  return [
    oneIn(random, 3) ? { type: 'file', file: { file_data: PIXEL } } : { type: 'image_url', image_url: { url: image } },
  ];
}

/** Written from the vendors' documents, without the gateway's code. */
export function billOf({ protocol, body }: Ordeal, random: Random): Bill {
  const passes = [passOf(body, random)];
  if (body['context_management'] !== undefined) passes.push({ inputTokens: CONTEXT, outputTokens: MAX_OUTPUT });
  const asked = body['service_tier'] as string | undefined;
  const tier = asked ?? (body['model'] === 'moody' ? 'priority' : undefined);
  const meters = metersOf(protocol, body);
  const counted = passes.map((pass) => ({ ...pass, meter: random.pick(meters) }));
  const exact = counted.reduce((sum, { meter, inputTokens, outputTokens }) => {
    const rates = inputTokens > ABOVE_TOKENS && body['model'] !== 'level' ? RATES_ABOVE : RATES;
    return sum + BigInt(inputTokens) * e8(rates[meter], tier) + BigInt(outputTokens) * e8(rates.output, tier);
  }, 0n);
  const usage = protocol === 'messages' ? messagesUsage(counted, tier) : chatUsage(counted);
  return { usage, tier, costE8: (exact + 999_999n) / 1_000_000n };
}

/** Chat's vendor keeps what it likes for some minutes; the other what it is told to, and what it fetches as it likes. */
function metersOf(protocol: TestProtocol, body: Ordeal['body']): readonly Meter[] {
  if (protocol === 'chat') return ['input', 'cacheRead', 'cacheWrite'];
  const text = JSON.stringify(body);
  if (/"ttl":"1h"|"type":"url"|"document"|strange_member|context_management|service_tier/.test(text))
    return ['input', 'cacheRead', 'cacheWrite', 'cacheWrite1h'];
  return text.includes('"cache_control"') ? ['input', 'cacheRead', 'cacheWrite'] : ['input', 'cacheRead'];
}

function e8(usd: number, tier: string | undefined): bigint {
  return BigInt(Math.round(usd * (tier === undefined ? 1 : (TIERS[tier] ?? 1)) * 1e8));
}

type Counted = Pass & { readonly meter: Meter };

function messagesUsage(passes: readonly Counted[], tier: string | undefined): Bill['usage'] {
  const counts = ({ meter, inputTokens, outputTokens }: Counted) => ({
    input_tokens: meter === 'input' ? inputTokens : 0,
    cache_read_input_tokens: meter === 'cacheRead' ? inputTokens : 0,
    cache_creation_input_tokens: meter === 'cacheWrite' || meter === 'cacheWrite1h' ? inputTokens : 0,
    cache_creation: {
      ephemeral_5m_input_tokens: meter === 'cacheWrite' ? inputTokens : 0,
      ephemeral_1h_input_tokens: meter === 'cacheWrite1h' ? inputTokens : 0,
    },
    output_tokens: outputTokens,
  });
  const [first, ...others] = passes as readonly [Counted, ...Counted[]];
  const iterations =
    others.length === 0
      ? {}
      : {
          iterations: [
            ...others.map((pass) => ({ type: 'compaction', ...counts(pass) })),
            { type: 'message', ...counts(first) },
          ],
        };
  return { ...counts(first), ...iterations, ...(tier !== undefined && { service_tier: tier }) };
}

function chatUsage(passes: readonly Counted[]): Bill['usage'] {
  const [{ meter, inputTokens, outputTokens }] = passes as readonly [Counted];
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: {
      cached_tokens: meter === 'cacheRead' ? inputTokens : 0,
      cache_write_tokens: meter === 'cacheWrite' ? inputTokens : 0,
    },
  };
}

function passOf(body: Ordeal['body'], random: Random): Pass {
  const count = random.pick([countCl100k, countO200k]);
  const tokens = (text: string) => Math.floor(count(text, { disallowedSpecial: new Set() }) * FACTOR);
  const messages = body['messages'] as readonly { readonly content: string | readonly Record<string, unknown>[] }[];
  const parts = messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content));
  const texts = [
    ...messages.flatMap(({ content }) => (typeof content === 'string' ? [content] : [])),
    ...parts.flatMap(({ text }) => (typeof text === 'string' ? [text] : [])),
    ...(typeof body['system'] === 'string' ? [body['system']] : []),
    ...(body['tools'] === undefined ? [] : [JSON.stringify(body['tools'])]),
  ];
  const prediction = body['prediction'] as { readonly content: string } | undefined;
  const extra = parts.filter(({ type }) => type !== 'text').map(tokensOfPart);
  const overhead = body['tools'] === undefined ? 0 : TOOL_OVERHEAD;
  const strange = body['strange_member'] === undefined ? 0 : CONTEXT;
  const read = texts.reduce((sum, text) => sum + tokens(text), 4 * messages.length + overhead + strange);
  const limit = Math.max(Number(body['max_tokens'] ?? 0), Number(body['max_completion_tokens'] ?? 0)) || MAX_OUTPUT;
  const predicted = prediction === undefined ? 0 : tokens(prediction.content);
  return {
    inputTokens: Math.min(
      CONTEXT,
      extra.reduce((sum, each) => sum + each, read),
    ),
    outputTokens: (Math.min(limit, MAX_OUTPUT) + predicted) * Number(body['n'] ?? 1),
  };
}

/** What is fetched or unpacked may fill the context. */
function tokensOfPart(part: Readonly<Record<string, unknown>>): number {
  const source = (part['source'] ?? {}) as { readonly type?: string };
  const address = (part['image_url'] ?? {}) as { readonly url?: string };
  const isInBody = (part['type'] === 'image' && source.type === 'base64') || address.url?.startsWith('data:') === true;
  return isInBody ? IMAGE_TOKENS : CONTEXT;
}
