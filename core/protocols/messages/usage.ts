import { asArray, asObject, asText, type JsonObject } from '../../base/json-values';
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
import { unlessPlain, usageReader } from '../usage-report';

/**
 * The members of the token counts of one run of the model (platform.claude.com/docs, Messages, `Usage`). Reports always have the sum of
 * cache writes; only newer reports split it.
 */
const COUNTS = {
  input: { at: ['input_tokens'] },
  cacheRead: { beside: 'input', at: ['cache_read_input_tokens'] },
  cacheWrite: {
    beside: 'input',
    at: ['cache_creation_input_tokens'],
    orSumOf: ['cache_creation.ephemeral_5m_input_tokens', 'cache_creation.ephemeral_1h_input_tokens'],
  },
  cacheWrite1h: { in: 'cacheWrite', at: ['cache_creation.ephemeral_1h_input_tokens'] },
  output: { at: ['output_tokens'] },
  reasoning: { in: 'output', at: ['output_tokens_details.thinking_tokens'] },
};

const readRun = usageReader({ counts: COUNTS, free: [] });

/** The reader of whole usage reports. It knows the counts in `iterations`, but leaves them to `readRun`: each entry there is one run of the model. */
const readReport = usageReader({
  counts: {
    ...COUNTS,
    webSearch: { at: ['server_tool_use.web_search_requests'] },
    webFetch: { at: ['server_tool_use.web_fetch_requests'] },
  },
  free: Object.values<{ at: string[]; orSumOf?: string[] }>(COUNTS).flatMap(({ at, orSumOf = [] }) =>
    [...at, ...orSumOf].map((path) => `iterations.${path}`),
  ),
});

/** The tier, speed and region that the model's plain price covers. */
const PLAIN = { tier: ['standard'], speed: ['standard'], geo: ['global', 'not_available'] } as const;

/** What reports have instead of a region. */
const NO_REGION = ['not_available'];

const PIECES = ['webSearch', 'webFetch'] as const;

/**
 * Reads the usage that a message, or the last event of a stream, reports. Each entry of `iterations` is one run of the model. Only
 * `iterations` includes the runs for compaction and for the advisor tool.
 */
export function readMessagesUsage(message: JsonObject, isFinal: boolean): Usage {
  const usage = asObject(message['usage']);
  if (usage === undefined) return UNKNOWN_USAGE;
  const isCredited = isRedeemed(usage);
  const { unknown, ...whole } = readReport(usage);
  const runs = isFinal ? asArray(usage['iterations']).map((run) => asObject(run) ?? {}) : [];
  const reports = runs.length === 0 ? [whole] : runs.map((run) => readRun(run));
  const pieces = piecesOf(whole.counts, isFinal && hasContainer(message));
  const passes = reports.map(({ counts }, at): Pass => {
    const charged = at === 0 ? new Map([...counts, ...pieces]) : counts;
    return {
      model: asText((runs[at] ?? message)['model']) || undefined,
      tier: unlessPlain(usage['service_tier'], PLAIN.tier),
      speed: unlessPlain(usage['speed'], PLAIN.speed),
      geo: unlessPlain(usage['inference_geo'], PLAIN.geo),
      counts: isCredited ? asCacheReads(charged) : charged,
    };
  });
  const region = unlessPlain(usage['inference_geo'], NO_REGION);
  const suspect = [...new Set([whole, ...reports].flatMap((report) => report.suspect ?? []))];
  return {
    passes,
    ...(region !== undefined && { region }),
    ...(whole.reasoning !== undefined && { reasoning: whole.reasoning }),
    ...(isFinal && unknown !== undefined && { unknown }),
    ...(suspect.length > 0 && { suspect }),
  };
}

/**
 * Returns how often the vendor's tools ran. Reports omit code executions, so a call with a container counts as one execution. If web tools
 * ran in the call, the vendor does not charge for code execution.
 */
function piecesOf(counts: Counts, hasContainer: boolean): Counts {
  const pieces = new Map(PIECES.flatMap((piece) => (counts.has(piece) ? [[piece, counts.get(piece)]] : [])));
  return hasContainer && pieces.size === 0 ? countsOf({ codeExecution: 1 }) : pieces;
}

/** Returns whether an answer, or the last event of a stream, names a container. */
function hasContainer({ container, delta }: JsonObject): boolean {
  return asObject(container) !== undefined || asObject(asObject(delta)?.['container']) !== undefined;
}

/**
 * Returns whether a fallback credit was redeemed. The vendor then bills as if the whole conversation had used this model, so cache writes
 * cost the same as cache reads.
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

/** Returns the usage in the form of Messages, with 0 for unknown counts, because client programs calculate with them. */
export function writeMessagesUsage(usage: Usage): JsonObject {
  const short = tokensOf(usage, ['cacheWrite']);
  const hour = tokensOf(usage, ['cacheWrite1h']);
  const hasWrites = (short ?? hour) !== undefined;
  return {
    input_tokens: tokensOf(usage, FRESH_METERS) ?? 0,
    cache_creation_input_tokens: (short ?? 0) + (hour ?? 0),
    cache_read_input_tokens: tokensOf(usage, CACHE_READ_METERS) ?? 0,
    cache_creation: hasWrites ? { ephemeral_5m_input_tokens: short ?? 0, ephemeral_1h_input_tokens: hour ?? 0 } : null,
    output_tokens: outputTokens(usage) ?? 0,
    output_tokens_details: usage.reasoning === undefined ? null : { thinking_tokens: usage.reasoning },
    server_tool_use: null,
    service_tier: null,
    inference_geo: null,
    speed: null,
  };
}
