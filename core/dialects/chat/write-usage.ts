import {
  CACHE_READ_METERS,
  CACHE_WRITE_METERS,
  INPUT_METERS,
  outputTokens,
  tokensOf,
  type Usage,
} from '../../catalog/usage';
import type { JsonObject } from '../../json-values';

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
