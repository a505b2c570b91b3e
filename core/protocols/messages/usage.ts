import {
  CACHE_READ_METERS,
  type Counts,
  countsOf,
  FRESH_METERS,
  outputTokens,
  type Pass,
  tokensOf,
  UNKNOWN_USAGE,
  type Usage,
} from '../../catalog/usage';
import { asArray, asCount, asObject, asText, type JsonObject } from '../../json-values';
import { unknownNumbers } from '../unknown-numbers';

/** Known numbers of a usage report: charged, parts of charged numbers, or free. Each entry of `iterations` has the first ones too. */
const COUNTED = [
  'input_tokens',
  'output_tokens',
  'cache_read_input_tokens',
  'cache_creation_input_tokens',
  'cache_creation.ephemeral_5m_input_tokens',
  'cache_creation.ephemeral_1h_input_tokens',
  'output_tokens_details.thinking_tokens',
];
const KNOWN: ReadonlySet<string> = new Set([
  ...COUNTED,
  ...COUNTED.map((path) => `iterations.${path}`),
  'server_tool_use.web_search_requests',
  'server_tool_use.web_fetch_requests',
]);

/** The tier, speed and geography that the plain price covers. */
const PLAIN = { tier: ['standard'], speed: ['standard'], geo: ['global', 'not_available'] } as const;

/**
 * Reads the usage that a message, or the last event of a stream, reports. Each entry of `iterations` is a pass. Only `iterations`
 * counts compaction and the advisor.
 */
export function readUsage(message: JsonObject, isFinal: boolean): Usage {
  const usage = asObject(message['usage']);
  if (usage === undefined) return UNKNOWN_USAGE;
  const isCredited = isRedeemed(usage);
  const pieces = piecesOf(usage, isFinal && hasContainer(message));
  const passOf = (run: JsonObject, model: unknown, isFirst: boolean): Pass => {
    const counts = isFirst ? withPieces(readCounts(run), pieces) : readCounts(run);
    return {
      model: asText(model) || undefined,
      tier: unlessPlain(usage['service_tier'], PLAIN.tier),
      speed: unlessPlain(usage['speed'], PLAIN.speed),
      geo: unlessPlain(usage['inference_geo'], PLAIN.geo),
      counts: isCredited ? asCacheReads(counts) : counts,
    };
  };
  const runs = isFinal ? asArray(usage['iterations']) : [];
  const passes =
    runs.length === 0
      ? [passOf(usage, message['model'], true)]
      : runs.map((each, at) => {
          const run = asObject(each) ?? {};
          return passOf(run, run['model'], at === 0);
        });
  const unknown = isFinal ? unknownNumbers(usage, KNOWN) : undefined;
  return unknown === undefined ? { passes } : { passes, unknown };
}

function unlessPlain(value: unknown, plain: readonly string[]): string | undefined {
  const text = asText(value);
  return text === '' || plain.includes(text) ? undefined : text;
}

function readCounts(usage: JsonObject): Counts {
  const split = asObject(usage['cache_creation']);
  const allWrites = asCount(usage['cache_creation_input_tokens']);
  const shortWrites = asCount(split?.['ephemeral_5m_input_tokens']);
  const hourWrites = asCount(split?.['ephemeral_1h_input_tokens']);
  return countsOf({
    input: asCount(usage['input_tokens']),
    output: asCount(usage['output_tokens']),
    cacheRead: asCount(usage['cache_read_input_tokens']),
    cacheWrite: shortCacheWrites(allWrites, shortWrites, hourWrites),
    cacheWrite1h: hourWrites,
  });
}

/**
 * Counts the uses of the vendor's tools. The report does not count code executions: a call with a container had one, which is free
 * beside web tools.
 */
function piecesOf(usage: JsonObject, hasContainer: boolean): Counts {
  const used = asObject(usage['server_tool_use']);
  const webSearch = asCount(used?.['web_search_requests']) || undefined;
  const webFetch = asCount(used?.['web_fetch_requests']) || undefined;
  const ranCode = hasContainer && webSearch === undefined && webFetch === undefined;
  return countsOf({ webSearch, webFetch, codeExecution: ranCode ? 1 : undefined });
}

/** Tells whether an answer, or the last event of a stream, names a container. */
function hasContainer({ container, delta }: JsonObject): boolean {
  return asObject(container) !== undefined || asObject(asObject(delta)?.['container']) !== undefined;
}

function withPieces(counts: Counts, pieces: Counts): Counts {
  return pieces.size === 0 ? counts : new Map([...counts, ...pieces]);
}

/**
 * Tells whether a fallback credit was redeemed. The vendor then bills as if the conversation had always been at this model, so
 * cache writes cost like reads.
 */
function isRedeemed(usage: JsonObject): boolean {
  return asText(asObject(asObject(usage['fallback_credit'])?.['status'])?.['type']) === 'redeemed';
}

function asCacheReads(counts: Counts): Counts {
  const written = (counts.get('cacheWrite') ?? 0) + (counts.get('cacheWrite1h') ?? 0);
  const moved = new Map(counts).set('cacheRead', (counts.get('cacheRead') ?? 0) + written);
  moved.delete('cacheWrite');
  moved.delete('cacheWrite1h');
  return moved;
}

/**
 * Returns the tokens written to the short cache. The sum is the older field and always right; its part outside the one-hour cache
 * is in the short one.
 */
function shortCacheWrites(all: number | undefined, short: number | undefined, hour: number | undefined) {
  if (all === undefined || hour === undefined) return short ?? all;
  return Math.max(all - hour, 0);
}

/** Returns the usage with 0 for unknown counts, because clients calculate with them. */
export function writeUsage(usage: Usage, reasoning: number | undefined): JsonObject {
  const short = tokensOf(usage, ['cacheWrite']);
  const hour = tokensOf(usage, ['cacheWrite1h']);
  const hasWrites = (short ?? hour) !== undefined;
  return {
    input_tokens: tokensOf(usage, FRESH_METERS) ?? 0,
    cache_creation_input_tokens: (short ?? 0) + (hour ?? 0),
    cache_read_input_tokens: tokensOf(usage, CACHE_READ_METERS) ?? 0,
    cache_creation: hasWrites ? { ephemeral_5m_input_tokens: short ?? 0, ephemeral_1h_input_tokens: hour ?? 0 } : null,
    output_tokens: outputTokens(usage) ?? 0,
    output_tokens_details: reasoning === undefined ? null : { thinking_tokens: reasoning },
    server_tool_use: null,
    service_tier: null,
    inference_geo: null,
    speed: null,
  };
}
