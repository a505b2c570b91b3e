import {
  CACHE_READ_METERS,
  CACHE_WRITE_METERS,
  countsOf,
  INPUT_METERS,
  outputTokens,
  type TokenMeter,
  tokensOf,
  UNKNOWN_USAGE,
  type Usage,
} from '../../catalog/usage';
import { asCount, asObject, asText, type JsonObject } from '../../json-values';
import { unknownNumbers } from '../unknown-numbers';

/** Known numbers of a usage report: charged, parts of charged numbers, or free. */
const KNOWN: ReadonlySet<string> = new Set([
  'prompt_tokens',
  'completion_tokens',
  'total_tokens',
  'prompt_cache_hit_tokens',
  'prompt_cache_miss_tokens',
  ...['cached', 'cache_write', 'audio', 'text', 'image'].map((kind) => `prompt_tokens_details.${kind}_tokens`),
  ...['reasoning', 'audio', 'text', 'image', 'accepted_prediction', 'rejected_prediction'].map(
    (kind) => `completion_tokens_details.${kind}_tokens`,
  ),
]);

/** The service tiers that the plain price covers. */
const PLAIN_TIERS = ['default', 'auto', 'standard'];

type Meters<M extends TokenMeter> = { readonly [meter in M]?: number | undefined };

/** Reads the usage that an answer or a chunk reports; it has one pass. */
export function readUsage(answer: JsonObject): Usage {
  const usage = asObject(answer['usage']);
  if (usage === undefined) return UNKNOWN_USAGE;
  const tier = asText(answer['service_tier']);
  const { input, cacheRead, cacheWrite, audioInput } = readPrompt(usage);
  const { output, audioOutput } = readCompletion(usage);
  const pass = {
    model: asText(answer['model']) || undefined,
    tier: tier === '' || PLAIN_TIERS.includes(tier) ? undefined : tier,
    counts: countsOf({ input, cacheRead, cacheWrite, audioInput, output, audioOutput }),
  };
  const unknown = unknownNumbers(usage, KNOWN);
  return unknown === undefined ? { passes: [pass] } : { passes: [pass], unknown };
}

/**
 * Reads the input counts. `prompt_tokens` includes cached, written and audio tokens. If those exceed it, the report makes no sense
 * and the input is unknown.
 */
function readPrompt(usage: JsonObject): Meters<'input' | 'cacheRead' | 'cacheWrite' | 'audioInput'> {
  const details = asObject(usage['prompt_tokens_details']);
  const prompt = asCount(usage['prompt_tokens']);
  const cacheRead = asCount(details?.['cached_tokens']) ?? asCount(usage['prompt_cache_hit_tokens']);
  const cacheWrite = asCount(details?.['cache_write_tokens']) || undefined;
  const audioInput = asCount(details?.['audio_tokens']) || undefined;
  const input = rest(prompt, cacheRead, cacheWrite, audioInput);
  return input === undefined ? {} : { input, cacheRead, cacheWrite, audioInput };
}

function readCompletion(usage: JsonObject): Meters<'output' | 'audioOutput'> {
  const audioOutput = asCount(asObject(usage['completion_tokens_details'])?.['audio_tokens']) || undefined;
  const output = rest(asCount(usage['completion_tokens']), audioOutput);
  return output === undefined ? {} : { output, audioOutput };
}

/** Returns the total less its parts; undefined if the parts exceed the total. */
function rest(all: number | undefined, ...parts: readonly (number | undefined)[]): number | undefined {
  if (all === undefined) return undefined;
  let left = all;
  for (const part of parts) left -= part ?? 0;
  return left < 0 ? undefined : left;
}

/**
 * Returns the usage in the form of Chat: the prompt's tokens include cached ones, the completion's include reasoning. Undefined
 * if nothing is known.
 */
export function writeUsage(usage: Usage, reasoning: number | undefined): JsonObject | undefined {
  const input = tokensOf(usage, INPUT_METERS);
  const output = outputTokens(usage);
  if (input === undefined && output === undefined) return undefined;
  const [prompt, completion] = [input ?? 0, output ?? 0];
  const written = tokensOf(usage, CACHE_WRITE_METERS);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: tokensOf(usage, CACHE_READ_METERS) ?? 0,
      ...(written !== undefined && { cache_write_tokens: written }),
    },
    ...(reasoning !== undefined && { completion_tokens_details: { reasoning_tokens: reasoning } }),
  };
}
