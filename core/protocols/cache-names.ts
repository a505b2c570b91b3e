import type { Protocol } from '../catalog/protocols';

/**
 * Members that name a part of the vendor's prompt cache. The cache belongs to the platform's credential: who sends another
 * customer's name learns from the cached tokens whether that customer has sent the same prompt. Upstreams therefore get a name
 * that only this account has.
 */
export const CACHE_NAMES = [
  // developers.openai.com, Prompt caching, 2026-11. Fireworks and Moonshot read it too.
  'prompt_cache_key',
  // docs.vllm.ai, Automatic prefix caching, 2026-11. SGLang reads it too.
  'cache_salt',
  // sgl-project/sglang, srt/entrypoints/openai/protocol.py, 2026-11
  'extra_key',
  // fireworks.ai/docs, Create chat completion, 2026-11
  'prompt_cache_isolation_key',
] as const;

/** The protocols whose vendors read the first of them. Calls of others cannot name a part of the cache. */
export const NAMES_CACHES: ReadonlySet<Protocol> = new Set<Protocol>(['chat', 'responses']);
