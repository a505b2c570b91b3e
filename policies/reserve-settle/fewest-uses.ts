import type { ModelRequest } from '../../core/calls/call';
import type { ToolUse } from '../../core/dialects/reading';

/** A tool that is offered can be used at least once: no vendor says what it makes of a limit of 0. */
const FEWEST = 1;

/**
 * Returns the call with one use of each tool of the vendor for which it names no limit: agents offer a search with every call and seldom
 * make one. undefined where that changes nothing.
 */
export function withFewestUses(request: ModelRequest): ModelRequest | undefined {
  const { reading } = request;
  if (reading.toolUses?.some(mayBeFewer) !== true) return undefined;
  const toolUses = reading.toolUses.map((tool) => (mayBeFewer(tool) ? { ...tool, atMost: FEWEST } : tool));
  return { ...request, reading: { ...reading, toolUses } };
}

/** The gateway writes the limit. */
function mayBeFewer({ limit, atMost }: ToolUse): boolean {
  return limit?.insert !== undefined && atMost === undefined;
}
