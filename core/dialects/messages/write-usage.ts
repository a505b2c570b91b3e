import { CACHE_READ_METERS, FRESH_METERS, outputTokens, tokensOf, type Usage } from '../../catalog/usage';
import type { JsonObject } from '../../json-values';

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
