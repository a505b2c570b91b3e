import type { Candidate } from '../catalog/catalog';
import { pricesFor } from '../catalog/price';
import { VARIANTS } from '../catalog/usage';
import type { Reading } from '../dialects/reading';
import { fail } from '../errors';
import type { ModelRequest } from './call';

/** Leaves out candidates without a price for what a call asks for. @throws MODEL_NOT_PRICED when none is left */
export function pricedCandidates(candidates: readonly Candidate[], { reading }: ModelRequest): readonly Candidate[] {
  return withVariants(withPieces(candidates, reading), reading);
}

function withPieces(candidates: readonly Candidate[], { toolUses = [] }: Reading): readonly Candidate[] {
  let priced = candidates;
  for (const { meter, param } of toolUses) {
    if (meter === undefined) continue;
    const before = priced;
    priced = before.filter(({ model }) => model.price.pieces.has(meter));
    if (priced.length === 0 && before.length > 0)
      throw fail('MODEL_NOT_PRICED', { param, message: `This model has no price for ${meter} in the configuration.` });
  }
  return priced;
}

function withVariants(candidates: readonly Candidate[], { asked }: Reading): readonly Candidate[] {
  if (asked === undefined) return candidates;
  const priced = candidates.filter(({ model }) => pricesFor(model.price, asked) !== undefined);
  if (priced.length > 0 || candidates.length === 0) return priced;
  const [first = 'tier'] = VARIANTS.filter((kind) => asked[kind] !== undefined);
  const what = VARIANTS.flatMap((kind) => asked[kind] ?? []).join(', ');
  throw fail('MODEL_NOT_PRICED', {
    param: MEMBERS[first],
    message: `This model has no price for ${what} in the configuration.`,
  });
}

/** The members that name a variant. All protocols use the same names. */
const MEMBERS = { tier: 'service_tier', speed: 'speed', geo: 'inference_geo' } as const;
