import { DIALECTS } from '../../core/dialects/dialects';

/** The members in the dialects' tables that influence the cost. */
const COSTLY = Object.values(DIALECTS).flatMap(({ members }) =>
  Object.entries(members).flatMap(([name, rule]) => (rule.class === 'free' ? [] : [name])),
);

/** Members that may stand only once. They decide about routing, money or the edits of adapters, and readers differ in which of two they use. */
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

/** The same members in upper case. Some upstreams ignore case and would take `Max_Tokens` for the limit, which the gateway had not seen. */
const FOLDED: ReadonlyMap<string, string> = new Map([...ONCE].map((name) => [name.toUpperCase(), name]));

/** Returns the member that a key resembles without being equal to it. */
export function lookalikeOf(key: string): string | undefined {
  return ONCE.has(key) ? undefined : FOLDED.get(key.toUpperCase());
}
