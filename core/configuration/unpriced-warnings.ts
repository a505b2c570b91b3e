import { type ModelEntry, protocolsOf, type Upstream } from '../catalog/catalog';
import type { Meter } from '../catalog/usage';
import { DIALECTS, usedMeters } from '../dialects/dialects';
import type { PipelineSettings } from './pipelines';
import type { LocatedProblem } from './problems';

/**
 * Warns of each enabled upstream whose models lack prices for tools that clients may offer, because the platform pays for these.
 * An upstream with `unpricedTools` raises none: its operator has decided.
 */
export function unpricedWarnings(
  upstreams: readonly Upstream[],
  pipelines: readonly Pick<PipelineSettings, 'steps'>[],
): LocatedProblem[] {
  if (pipelines.every(refusesUnpriced)) return [];
  return upstreams.flatMap((upstream) => {
    const { name, models, disabled, unpricedTools } = upstream;
    if (disabled !== undefined || unpricedTools !== undefined) return [];
    const lacking = models.flatMap((model) => {
      const meters = missingMeters(upstream, model);
      return meters.length === 0 ? [] : [`${model.name} (${meters.join(', ')})`];
    });
    if (lacking.length === 0) return [];
    const message = `upstream "${name}" has models without a price for tools that clients may offer, which you pay: ${lacking.join('; ')}. Add price.pieces, or set unpricedTools to "refuse" or "forward"`;
    return [{ path: ['serviceEndpoints', name, 'models'], message }];
  });
}

function missingMeters(upstream: Upstream, model: ModelEntry): readonly Meter[] {
  const meters = protocolsOf({ upstream, model }).flatMap((protocol) => usedMeters(DIALECTS[protocol]));
  return [...new Set(meters)].filter((meter) => !model.price.pieces.has(meter));
}

function refusesUnpriced({ steps }: Pick<PipelineSettings, 'steps'>): boolean {
  return steps.every(
    ({ policy, settings }) =>
      policy.name !== 'model-request' || (settings as { unpricedTools?: string }).unpricedTools === 'refuse',
  );
}
