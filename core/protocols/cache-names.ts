import type { Protocol } from '../catalog/protocols';

/**
 * Members that name a section of the vendor's prompt cache. The cache belongs to the platform's credential. A customer that sends another
 * customer's name learns from the cached tokens whether that customer has sent the same prompt. The gateway therefore sends upstreams a
 * name that is unique to the account.
 */
export const CACHE_NAMES = [
  // The source of the next member: developers.openai.com, Prompt caching, 2026-11. Fireworks and Moonshot accept the member, too.
  'prompt_cache_key',
  // The source of the next member: docs.vllm.ai, Automatic prefix caching, 2026-11. SGLang accepts the member, too.
  'cache_salt',
  // The source of the next member: sgl-project/sglang, srt/entrypoints/openai/protocol.py, 2026-11
  'extra_key',
  // The source of the next member: fireworks.ai/docs, Create chat completion, 2026-11
  'prompt_cache_isolation_key',
] as const;

/** The protocols in which a request may name a section of the vendor's prompt cache (`prompt_cache_key`). */
export const NAMES_CACHES: ReadonlySet<Protocol> = new Set<Protocol>(['chat', 'responses']);
