import { type Counts, countsOf, UNKNOWN_USAGE, type Usage } from '../../catalog/usage';
import { asArray, asCount, asObject, asText, type JsonObject } from '../../json-values';
import { unknownNumbers } from '../unknown-numbers';

/** Known numbers of a usage report: charged, parts of charged numbers, or free. */
const KNOWN: ReadonlySet<string> = new Set([
  'input_tokens',
  'output_tokens',
  'total_tokens',
  'input_tokens_details.cached_tokens',
  'input_tokens_details.cache_write_tokens',
  'output_tokens_details.reasoning_tokens',
]);

/** The service tiers that the plain price covers. */
const PLAIN_TIERS: readonly string[] = ['default', 'auto', 'standard'];

/** Reads the usage that a response reports; it has one pass. The output includes hidden reasoning. */
export function readUsage(response: JsonObject): Usage {
  const usage = asObject(response['usage']);
  if (usage === undefined) return UNKNOWN_USAGE;
  const tier = asText(response['service_tier']);
  const pass = {
    model: asText(response['model']) || undefined,
    tier: tier === '' || PLAIN_TIERS.includes(tier) ? undefined : tier,
    counts: new Map([...readTokens(usage), ...piecesIn(response['output'])]),
  };
  const unknown = unknownNumbers(usage, KNOWN);
  return unknown === undefined ? { passes: [pass] } : { passes: [pass], unknown };
}

/**
 * Reads the token counts. `input_tokens` includes cached and written tokens. If those exceed it, the report makes no sense and the
 * input is unknown.
 */
function readTokens(usage: JsonObject): Counts {
  const details = asObject(usage['input_tokens_details']);
  const all = asCount(usage['input_tokens']);
  const cacheRead = asCount(details?.['cached_tokens']);
  const cacheWrite = asCount(details?.['cache_write_tokens']) || undefined;
  const output = asCount(usage['output_tokens']);
  const input = all === undefined ? -1 : all - (cacheRead ?? 0) - (cacheWrite ?? 0);
  return input < 0 ? countsOf({ output }) : countsOf({ input, cacheRead, cacheWrite, output });
}

/** Counts the uses of the vendor's tools. The report does not count them, but the output has an item for each. */
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

/** Tells whether an item is a search. Opening a found page, and looking for text in it, belong to the search. */
function isSearch(item: JsonObject): boolean {
  const action = asText(asObject(item['action'])?.['type']);
  return action !== 'open_page' && action !== 'find_in_page';
}
