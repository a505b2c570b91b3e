import { type Candidate, entryNamed, type ModelEntry } from '../catalog/catalog';
import { upstreamPrice } from '../catalog/customer-prices';
import { pricesFor } from '../catalog/price';
import { VARIANTS } from '../catalog/usage';
import type { NeededModel } from '../dialects/dialect';
import { type Extra, isUnpriced, type Reading } from '../dialects/reading';
import { fail } from '../errors';
import type { ModelRequest } from './call';

type Asked = Pick<ModelRequest, 'reading' | 'refusesUnpriced'>;

/**
 * Leaves out candidates without a price for what a call asks for. A tool or an extra for which no candidate has one goes to those
 * that do not refuse it.
 * @throws MODEL_NOT_PRICED when none is left
 */
export function pricedCandidates(candidates: readonly Candidate[], asked: Asked): readonly Candidate[] {
  const { toolUses = [], extras = [] } = asked.reading;
  let left = candidates;
  for (const tool of toolUses)
    left = preferPriced(left, asked, ({ model }) => !isUnpriced(tool, model), tool.meter ?? '', tool.param);
  for (const extra of extras)
    left = preferPriced(left, asked, (candidate) => isPriced(extra, candidate), extra.name, extra.param);
  return withVariants(left, asked.reading);
}

function preferPriced(
  candidates: readonly Candidate[],
  { refusesUnpriced }: Asked,
  hasPrice: (candidate: Candidate) => boolean,
  what: string,
  param: string,
): readonly Candidate[] {
  const priced = candidates.filter(hasPrice);
  if (priced.length > 0 || candidates.length === 0) return priced;
  const left = refusesUnpriced === true ? [] : candidates.filter(({ upstream }) => upstream.unpricedTools !== 'refuse');
  if (left.length > 0) return left;
  throw fail('MODEL_NOT_PRICED', { param, message: `This model has no price for ${what} in the configuration.` });
}

function isPriced({ meters, models }: Extra, candidate: Candidate): boolean {
  if (models !== undefined) return furtherModels(models, candidate).length === models.length;
  return meters?.every((meter) => !candidate.model.price.unpriced.has(meter)) ?? false;
}

/** A further model that a call may run, at the customer's price. */
export interface FurtherModel extends Pick<NeededModel, 'maxOutputTokens'> {
  readonly model: ModelEntry;
}

/** Returns those of some models that the candidate's upstream has. */
export function furtherModels(
  models: readonly NeededModel[],
  { upstream, priceOf = upstreamPrice }: Pick<Candidate, 'upstream' | 'priceOf'>,
): readonly FurtherModel[] {
  return models.flatMap(({ model: name, maxOutputTokens }) => {
    const model = entryNamed(upstream.models, name);
    return model === undefined ? [] : [{ model: { ...model, price: priceOf(model) }, maxOutputTokens }];
  });
}

/** Returns the names of what a call asks for without a price at the candidate, and answers do not report. */
export function unpricedUnseen({ extras = [] }: Reading, candidate: Candidate): readonly string[] {
  // Answers count the tokens of a meter apart.
  return extras.flatMap((extra) => (extra.meters !== undefined || isPriced(extra, candidate) ? [] : extra.name));
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
