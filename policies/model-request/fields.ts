/** Members that decide about routing, money or the edits of adapters: a second one would be read by somebody else. */
export const ONCE: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'stream',
  'stream_options',
  'max_tokens',
  'max_completion_tokens',
  'n',
  'priority',
  'service_tier',
  'speed',
  'inference_geo',
  'system',
  'temperature',
  'tools',
  'tool_choice',
  'metadata',
  'modalities',
  'web_search_options',
]);

/**
 * Some upstreams read names without regard to case, and would take `Max_Tokens` for the limit we did not see. In the
 * fold of such readers.
 */
const FOLDED: ReadonlyMap<string, string> = new Map([...ONCE].map((name) => [name.toUpperCase(), name]));

/** The member a key could be taken for without being it. */
export function lookalikeOf(key: string): string | undefined {
  return ONCE.has(key) ? undefined : FOLDED.get(key.toUpperCase());
}
