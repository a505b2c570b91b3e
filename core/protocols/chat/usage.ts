import { asArray, asObject, asText, type JsonObject } from '../../base/json-values';
import {
  CACHE_READ_METERS,
  CACHE_WRITE_METERS,
  outputTokens,
  tokensOf,
  totalInputTokens,
  UNKNOWN_USAGE,
  type Usage,
} from '../../catalog/usage';
import { type UsageSettings, unlessPlain, usageOfReport, usageReader } from '../usage-report';

/** The member names of Chat's usage reports. `prompt_tokens` and `completion_tokens` include their detail counts, unless the total shows otherwise. */
const readReport = usageReader({
  counts: {
    input: {
      at: ['prompt_tokens'],
      orSumOf: ['prompt_cache_hit_tokens', 'prompt_cache_miss_tokens'], // DeepSeek: docs.rs/deepseek-loop, UsageInfo, read 2026-11
    },
    cacheRead: {
      in: 'input',
      at: [
        // The source of names such as `prompt_tokens_details`: platform.openai.com, Chat completion object. Azure, xAI, Gemini, OpenRouter, Groq,
        // vLLM, SGLang and Alibaba use the names, too.
        'prompt_tokens_details.cached_tokens',
        'cached_tokens', // Moonshot: @ai-sdk/moonshotai, convert-moonshotai-chat-usage.ts, 2026-11
        'prompt_cache_hit_tokens', // DeepSeek: the same
        'num_cached_tokens', // Mistral, with the next: @ai-sdk/mistral, 2026-08-22
        'prompt_token_details.cached_tokens',
        'cache_read_input_tokens', // LiteLLM's proxy: docs.litellm.ai, Prompt Caching
      ],
    },
    cacheWrite: {
      in: 'input',
      at: [
        'prompt_tokens_details.cache_write_tokens', // OpenRouter: openrouter.ai/docs, Usage Accounting, 2026-08
        'prompt_tokens_details.cache_creation_input_tokens', // Alibaba: alibabacloud.com/help/model-studio/context-cache, 2026-03-31
        'prompt_tokens_details.created_cache_tokens', // vLLM: entrypoints/serve/engine/protocol.py, 2026-08
        'prompt_tokens_details.cache_creation_tokens', // LiteLLM's proxy, with the next
        'cache_creation_input_tokens',
      ],
      orSumOf: ['prompt_tokens_details.cache_creation.ephemeral_5m_input_tokens'], // Alibaba
    },
    audioInput: { in: 'input', at: ['prompt_tokens_details.audio_tokens'] },
    output: { at: ['completion_tokens'] },
    reasoning: {
      in: 'output', // at xAI beside: docs.x.ai, Consumption and Rate Limits, 2026-02
      at: [
        'completion_tokens_details.reasoning_tokens',
        'reasoning_tokens', // SGLang: entrypoints/openai/protocol.py, 2026-08
      ],
    },
    audioOutput: { in: 'output', at: ['completion_tokens_details.audio_tokens'] },
    webSearch: {
      at: [
        'server_tool_use.web_search_requests', // DeepSeek: deepseek-sdk 0.7.0
        'server_tool_use_details.web_search_requests', // OpenRouter: openrouter.ai/docs, ChatUsage, 2026-08-22
      ],
    },
  },
  total: 'total_tokens',
  free: [
    ...['text', 'image', 'video'].map((kind) => `prompt_tokens_details.${kind}_tokens`),
    ...['text', 'image', 'accepted_prediction', 'rejected_prediction'].map(
      (kind) => `completion_tokens_details.${kind}_tokens`,
    ),
    ...['image', 'audio', 'video'].map((kind) => `prompt_tokens_details.multimodal_tokens.${kind}`), // vLLM
    // Groq's times, in seconds; source: groq-typescript, completions.ts, 2026-07-24
    ...['queue_time', 'prompt_time', 'completion_time', 'total_time'],
    'cost_in_usd_ticks', // xAI: docs.x.ai, Cost Tracking, 2026-06
    // OpenRouter's cost of a call; source: openrouter.ai/docs, Usage Accounting, 2026-08
    'cost',
    ...['', '_prompt', '_completions'].map((kind) => `cost_details.upstream_inference${kind}_cost`),
  ],
});

/** The service tiers that the model's plain price covers. `on_demand` is Groq's: console.groq.com/docs, Service Tiers, 2026-02. */
const PLAIN_TIERS = ['default', 'auto', 'standard', 'on_demand'];

/** Reads the usage that an answer or a chunk reports. Chat reports the usage as one run of the model. */
export function readChatUsage(answer: JsonObject, settings?: UsageSettings): Usage {
  const report = reportIn(answer);
  if (report === undefined) return UNKNOWN_USAGE;
  const read = readReport(report, settings);
  const model = asText(answer['model']) || undefined;
  const tier = unlessPlain(answer['service_tier'], PLAIN_TIERS);
  return usageOfReport(read, [{ model, tier, counts: read.counts }]);
}

/** Returns the usage report of an answer or a chunk. Groq may put it into `x_groq`; Moonshot puts it only into the last chunk's choice. */
function reportIn(answer: JsonObject): JsonObject | undefined {
  return (
    asObject(answer['usage']) ??
    asObject(asObject(answer['x_groq'])?.['usage']) ?? // groq-typescript, chat/completions.ts, 2026-07-24
    asObject(asObject(asArray(answer['choices'])[0])?.['usage']) // github.com/caudena/beam_weaver, release 0.1.12, 2026-07-18
  );
}

/** Returns the usage in the form of Chat: prompt tokens include cached tokens, and completion tokens include reasoning. */
export function writeChatUsage(usage: Usage): JsonObject | undefined {
  if (usage.passes.length === 0) return undefined;
  const [prompt, completion] = [totalInputTokens(usage), outputTokens(usage) ?? 0];
  const written = tokensOf(usage, CACHE_WRITE_METERS);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: tokensOf(usage, CACHE_READ_METERS) ?? 0,
      ...(written !== undefined && { cache_write_tokens: written }),
    },
    ...(usage.reasoning !== undefined && { completion_tokens_details: { reasoning_tokens: usage.reasoning } }),
  };
}
