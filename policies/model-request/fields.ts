import { DIALECTS } from '../../core/dialects/dialects';

/** Members of the tables that have an influence on the cost. */
const COSTLY = Object.values(DIALECTS).flatMap(({ members }) =>
  Object.entries(members).flatMap(([name, rule]) => (rule.class === 'free' ? [] : [name])),
);

/** Members that decide about routing, money or the edits of adapters: a second one would be read by somebody else. */
export const ONCE: ReadonlySet<string> = new Set([
  ...COSTLY,
  'model',
  'stream',
  'stream_options',
  'priority',
  'temperature',
  'tool_choice',
  'metadata',
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
