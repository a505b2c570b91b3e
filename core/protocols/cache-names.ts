import type { Protocol } from '../catalog/protocols';

/**
 * Members that name a section of the vendor's prompt cache. The cache belongs to the platform's credential. A customer that sends another
 * customer's name learns from the cached tokens whether that customer has sent the same prompt. The gateway therefore sends upstreams a
 * name that is unique to the account.
 */
export const CACHE_NAMES = [
  // developers.openai.com, Prompt caching, 2026-11. Fireworks and Moonshot accept it too.
  'prompt_cache_key',
  // docs.vllm.ai, Automatic prefix caching, 2026-11. SGLang accepts it too.
  'cache_salt',
  // sgl-project/sglang, srt/entrypoints/openai/protocol.py, 2026-11
  'extra_key',
  // fireworks.ai/docs, Create chat completion, 2026-11
  'prompt_cache_isolation_key',
] as const;

/** The protocols whose vendors read `prompt_cache_key`. Calls of other protocols cannot name a section of the cache. */
export const NAMES_CACHES: ReadonlySet<Protocol> = new Set<Protocol>(['chat', 'responses']);
