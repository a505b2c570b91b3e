import type { ModelRequest } from '../../core/calls/call';
import type { ToolUse } from '../../core/dialects/reading';

/** The fewest uses of an offered tool. No vendor says what a limit of 0 means. */
const FEWEST = 1;

/**
 * Returns the call with one use of each vendor tool without a limit; undefined if that changes nothing. Agents offer a search with
 * every call and seldom use it.
 */
export function withFewestUses(request: ModelRequest): ModelRequest | undefined {
  const { reading } = request;
  if (reading.toolUses?.some(mayBeFewer) !== true) return undefined;
  const toolUses = reading.toolUses.map((tool) => (mayBeFewer(tool) ? { ...tool, atMost: FEWEST } : tool));
  return { ...request, reading: { ...reading, toolUses } };
}

/** True for a tool whose limit the gateway may write. */
function mayBeFewer({ limit, atMost }: ToolUse): boolean {
  return limit?.insert !== undefined && atMost === undefined;
}
