import { countTokens as countCl100k } from 'gpt-tokenizer/encoding/cl100k_base';
import { countTokens as countO200k } from 'gpt-tokenizer/encoding/o200k_base';
import type { Protocol } from '../../core/catalog/protocols';
import {
  ABOVE_TOKENS,
  type Body,
  CONTEXT,
  FACTOR,
  IMAGE_TOKENS,
  LEVEL_NAMES,
  MAX_OUTPUT,
  type Meter,
  type Ordeal,
  RATES,
  RATES_ABOVE,
  SEARCH_PRICE,
  TIERS,
  TOOL_OVERHEAD,
} from './adversary';
import type { Random } from './random';

/** The most that a truthful vendor may report, in its own terms, and its charge for that. */
export interface Bill {
  readonly usage: Body;
  readonly tier: string | undefined;
  /** The number of searches. */
  readonly searches: number;
  /** In units of 1e-8 USD, rounded up once. */
  readonly costE8: bigint;
}

/** One run of the model. Its input counts by one meter. */
interface Run {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly meter: Meter;
}

/** The counts as a vendor reports them: the turns of a loop are added up. */
type Reported = Readonly<Record<Meter, number>>;

/** The number of searches that a vendor makes without a limit. */
const UNLIMITED_SEARCHES = 50;
/** The vendor of Messages pauses an answer after ten runs. */
const MAX_FURTHER_RUNS = 9;

/** Returns the vendor's charge for a request as it arrived. It follows the vendors' documents, without the gateway's code. */
export function billOf({ protocol, path, body }: Ordeal, random: Random): Bill {
  const asked = body['service_tier'] as string | undefined;
  const tier = asked ?? (body['model'] === 'moody' ? 'priority' : undefined);
  const meters = metersOf(protocol, body);
  const searches = searchesOf(body);
  const run = (inputTokens: number, outputTokens: number) => ({
    inputTokens,
    outputTokens,
    meter: random.pick(meters),
  });
  const further = Math.min(searches, protocol === 'messages' ? MAX_FURTHER_RUNS : UNLIMITED_SEARCHES);
  const loop = [
    run(inputTokens(protocol, body, random), outputTokens(protocol, path, body, random)),
    ...Array.from({ length: further }, () => run(CONTEXT, 0)),
  ];
  const compaction = body['context_management'] === undefined ? [] : [run(CONTEXT, MAX_OUTPUT)];
  // Responses has one report for all runs.
  const reported = protocol === 'messages' ? [loop, compaction] : [[...loop, ...compaction]];
  const passes = reported.filter((runs) => runs.length > 0).map(together);
  const exact = passes.reduce((sum, pass) => sum + costOf(pass, body, tier), BigInt(searches) * usdE14(SEARCH_PRICE));
  return { usage: USAGE[protocol](passes, tier), tier, searches, costE8: (exact + 999_999n) / 1_000_000n };
}

function searchesOf(body: Body): number {
  if (body['web_search_options'] !== undefined) return 1;
  const tools = (body['tools'] ?? []) as readonly { readonly type?: string; readonly max_uses?: number }[];
  const search = tools.find(({ type }) => type?.startsWith('web_search'));
  if (search === undefined) return 0;
  return search.max_uses ?? (body['max_tool_calls'] as number | undefined) ?? UNLIMITED_SEARCHES;
}

function together(runs: readonly Run[]): Reported {
  const sum = { input: 0, cacheRead: 0, cacheWrite: 0, cacheWrite1h: 0, output: 0 };
  for (const { inputTokens, outputTokens, meter } of runs) {
    sum[meter] += inputTokens;
    sum.output += outputTokens;
  }
  return sum;
}

const inputOf = ({ input, cacheRead, cacheWrite, cacheWrite1h }: Reported) =>
  input + cacheRead + cacheWrite + cacheWrite1h;

/** Returns the cost in 1e-14 USD. */
function costOf(pass: Reported, body: Body, tier: string | undefined): bigint {
  const rates = inputOf(pass) > ABOVE_TOKENS && !LEVEL_NAMES.includes(body['model']) ? RATES_ABOVE : RATES;
  const factor = tier === undefined ? 1 : (TIERS[tier] ?? 1);
  const meters = Object.entries(pass) as [Meter, number][];
  return meters.reduce(
    (sum, [meter, count]) => sum + BigInt(count) * BigInt(Math.round(rates[meter] * factor * 1e8)),
    0n,
  );
}

function usdE14(usd: number): bigint {
  return BigInt(Math.round(usd * 1e8)) * 1_000_000n;
}

/**
 * Lists the meters that the input may count by. The vendor of Messages caches what the request marks, and fetched content as it likes. The other
 * vendor caches what it likes for some minutes.
 */
function metersOf(protocol: Protocol, body: Body): readonly Meter[] {
  if (protocol === 'embeddings') return ['input'];
  if (protocol !== 'messages') return ['input', 'cacheRead', 'cacheWrite'];
  const text = JSON.stringify(body);
  if (/"ttl":"1h"|"type":"url"|"document"|strange_member|context_management|service_tier|"web_search_/.test(text))
    return ['input', 'cacheRead', 'cacheWrite', 'cacheWrite1h'];
  return text.includes('"cache_control"') ? ['input', 'cacheRead', 'cacheWrite'] : ['input', 'cacheRead'];
}

const USAGE: Readonly<Record<Protocol, (passes: readonly Reported[], tier: string | undefined) => Bill['usage']>> = {
  messages: (passes, tier) => {
    const counts = (pass: Reported) => ({
      input_tokens: pass.input,
      cache_read_input_tokens: pass.cacheRead,
      cache_creation_input_tokens: pass.cacheWrite + pass.cacheWrite1h,
      cache_creation: {
        ephemeral_5m_input_tokens: pass.cacheWrite,
        ephemeral_1h_input_tokens: pass.cacheWrite1h,
      },
      output_tokens: pass.output,
    });
    const [first, ...others] = passes as readonly [Reported, ...Reported[]];
    const iterations = [
      ...others.map((pass) => ({ type: 'compaction', ...counts(pass) })),
      { type: 'message', ...counts(first) },
    ];
    return {
      ...counts(first),
      ...(others.length > 0 && { iterations }),
      ...(tier !== undefined && { service_tier: tier }),
    };
  },
  chat: ([pass]) => {
    const { cacheRead, cacheWrite, output } = pass as Reported;
    const all = inputOf(pass as Reported);
    return {
      prompt_tokens: all,
      completion_tokens: output,
      total_tokens: all + output,
      prompt_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
    };
  },
  responses: ([pass]) => {
    const { cacheRead, cacheWrite, output } = pass as Reported;
    const all = inputOf(pass as Reported);
    return {
      input_tokens: all,
      input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
      output_tokens: output,
      // The whole output is hidden reasoning.
      output_tokens_details: { reasoning_tokens: output },
      total_tokens: all + output,
    };
  },
  embeddings: ([pass]) => ({ prompt_tokens: pass?.input, total_tokens: pass?.input }),
};

type Counter = (text: string) => number;

/** Returns one of the two tokenizers, because vendors differ. */
function counterOf(random: Random): Counter {
  const count = random.pick([countCl100k, countO200k]);
  return (text) => Math.floor(count(text, { disallowedSpecial: new Set() }) * FACTOR);
}

type Part = Readonly<Record<string, unknown>>;

function inputTokens(protocol: Protocol, body: Body, random: Random): number {
  const tokens = counterOf(random);
  if (protocol === 'embeddings') return embeddedTokens(body, tokens);
  const said = body['messages'] ?? body['input'];
  const items = (typeof said === 'string' ? [{ content: said }] : said) as readonly Part[];
  const contents = items.map(({ content }) => content as string | readonly Part[] | undefined);
  const parts = contents.flatMap((content) => (typeof content === 'string' ? [] : (content ?? [])));
  const tools = (body['tools'] ?? []) as readonly { readonly type?: string }[];
  const texts = [
    ...contents,
    ...parts.map(({ text }) => text),
    ...items.flatMap((item) => [item['arguments'], item['output']]),
    body['system'],
    body['instructions'],
    ...(tools.length === 0 ? [] : [JSON.stringify(tools)]),
  ].filter((text) => typeof text === 'string');
  const ofVendor = tools.filter(({ type }) => type?.startsWith('web_search')).length;
  const overheads = (tools.length === 0 ? 0 : 1) + ofVendor;
  const strange = body['strange_member'] === undefined ? 0 : CONTEXT;
  const extra = parts.filter(({ text }) => text === undefined).map(tokensOfPart);
  const read = [...texts.map(tokens), ...extra, 4 * items.length, overheads * TOOL_OVERHEAD, strange];
  return Math.min(CONTEXT, sumOf(read));
}

/** Counts the inputs. Each may be as long as the context window. */
function embeddedTokens(body: Body, tokens: Counter): number {
  const inputs = [body['input']].flat(2) as readonly (string | number)[];
  if (body['strange_member'] !== undefined) return CONTEXT * inputsIn(body['input']);
  return sumOf(inputs.map((each) => (typeof each === 'string' ? tokens(each) : 1)));
}

function inputsIn(input: unknown): number {
  return Array.isArray(input) && typeof input[0] !== 'number' ? input.length : 1;
}

/** Draws the output tokens. Reasoning counts towards the limit. A compaction has any length. */
function outputTokens(protocol: Protocol, path: string, body: Body, random: Random): number {
  if (protocol === 'embeddings') return 0;
  if (path.endsWith('/compact')) return MAX_OUTPUT;
  const named = ['max_tokens', 'max_completion_tokens', 'max_output_tokens'].map((name) => Number(body[name] ?? 0));
  const limit = Math.max(...named) || MAX_OUTPUT;
  const prediction = body['prediction'] as { readonly content: string } | undefined;
  const predicted = prediction === undefined ? 0 : counterOf(random)(prediction.content);
  return (Math.min(limit, MAX_OUTPUT) + predicted) * Number(body['n'] ?? 1);
}

/** Counts a part. Fetched or unpacked content may fill the context. */
function tokensOfPart(part: Part): number {
  const source = (part['source'] ?? {}) as { readonly type?: string };
  const image = part['image_url'] as string | { readonly url: string } | undefined;
  const address = typeof image === 'string' ? image : image?.url;
  const isInBody = (part['type'] === 'image' && source.type === 'base64') || address?.startsWith('data:') === true;
  return isInBody ? IMAGE_TOKENS : CONTEXT;
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0);
}
