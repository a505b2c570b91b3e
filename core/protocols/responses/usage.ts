import { asArray, asObject, asText, type JsonObject } from '../../base/json-values';
import {
  CACHE_READ_METERS,
  CACHE_WRITE_METERS,
  type Counts,
  countsOf,
  outputTokens,
  tokensOf,
  totalInputTokens,
  UNKNOWN_USAGE,
  type Usage,
} from '../../catalog/usage';
import { unlessPlain, usageOfReport, usageReader } from '../usage-report';

/** `input_tokens` and `output_tokens` include the counts of their details, such as hidden reasoning, unless `total_tokens` shows otherwise. */
const readReport = usageReader({
  counts: {
    input: { at: ['input_tokens'] },
    cacheRead: { in: 'input', at: ['input_tokens_details.cached_tokens'] },
    cacheWrite: { in: 'input', at: ['input_tokens_details.cache_write_tokens'] },
    output: { at: ['output_tokens'] },
    reasoning: { in: 'output', at: ['output_tokens_details.reasoning_tokens'] },
  },
  total: 'total_tokens',
  free: ['cost_in_usd_ticks'], // xAI: docs.x.ai, Cost Tracking, 2026-06
});

/** The service tiers for which a vendor charges the plain price of the model, without a surcharge or discount. */
const PLAIN_TIERS: readonly string[] = ['default', 'auto', 'standard'];

/** Reads the usage that a response reports, as the usage of one run of the model. */
export function readResponsesUsage(response: JsonObject): Usage {
  const report = asObject(response['usage']);
  if (report === undefined) return UNKNOWN_USAGE;
  const read = readReport(report);
  const model = asText(response['model']) || undefined;
  const counts = new Map([...read.counts, ...piecesIn(response['output'])]);
  return usageOfReport(read, [{ model, tier: unlessPlain(response['service_tier'], PLAIN_TIERS), counts }]);
}

/** Counts searches and code containers at the vendor by the items of the output, because the usage report omits them. */
function piecesIn(output: unknown): Counts {
  let webSearch = 0;
  let fileSearch = 0;
  const containers = new Set<string>();
  for (const each of asArray(output)) {
    const item = asObject(each) ?? {};
    const type = asText(item['type']);
    if (type === 'web_search_call' && isSearch(item)) webSearch += 1;
    if (type === 'file_search_call') fileSearch += 1;
    if (type === 'code_interpreter_call') containers.add(asText(item['container_id']));
  }
  return countsOf({
    webSearch: webSearch || undefined,
    fileSearch: fileSearch || undefined,
    codeInterpreter: containers.size || undefined,
  });
}

/** Returns whether an item is a search. Opening a found page, or looking for text in the page, belongs to the search that found it. */
function isSearch(item: JsonObject): boolean {
  const action = asText(asObject(item['action'])?.['type']);
  return action !== 'open_page' && action !== 'find_in_page';
}

/** Returns the usage in the form of Responses: `input_tokens` includes tokens read from a cache and tokens written to a cache. */
export function writeResponsesUsage(usage: Usage): JsonObject | null {
  if (usage.passes.length === 0) return null;
  const input = totalInputTokens(usage);
  const output = outputTokens(usage) ?? 0;
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: tokensOf(usage, CACHE_READ_METERS) ?? 0,
      cache_write_tokens: tokensOf(usage, CACHE_WRITE_METERS) ?? 0,
    },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
    total_tokens: input + output,
  };
}
