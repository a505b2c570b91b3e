import type { Ending, ModelRequest } from '../../core/calls/call';
import type { Usage } from '../../core/catalog/usage';
import type { ToolUse } from '../../core/dialects/reading';

type Charged = Exclude<Ending, { billing: 'released' }>;

/** Adds usage that the vendor charges for each call of a kind but does not report, such as the search of a Chat call. */
export function withUnreported(ending: Charged, { reading: { toolUses } }: Pick<ModelRequest, 'reading'>): Charged {
  const missing =
    toolUses?.filter(({ meter, isReported }) => !isReported && meter !== undefined && !has(ending.usage, meter)) ?? [];
  if (missing.length === 0) return ending;
  return { ...ending, usage: withPieces(ending.usage, missing) };
}

function has({ passes }: Usage, meter: string): boolean {
  return passes.some(({ counts }) => counts.has(meter));
}

function withPieces({ passes, ...rest }: Usage, tools: readonly ToolUse[]): Usage {
  const [first = { counts: new Map<string, number>() }, ...others] = passes;
  const counts = new Map(first.counts);
  for (const { meter, pieces } of tools) if (meter !== undefined) counts.set(meter, pieces);
  return { ...rest, passes: [{ ...first, counts }, ...others] };
}
