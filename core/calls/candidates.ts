import type { ApiKeys, CallKey } from '../accounts/identify';
import { fail, type GatewayError, invalidParam } from '../base/errors';
import type { MaybeLater } from '../base/maybe-later';
import {
  type Candidate,
  type Catalog,
  entryNamed,
  isAllowed,
  type ModelEntry,
  type Upstream,
} from '../catalog/catalog';
import { upstreamPrice } from '../catalog/customer-prices';
import { shortenName } from '../catalog/model-names';
import { pricesFor } from '../catalog/price';
import { pinnedTo, takesVersion, versionOf } from '../catalog/upstream';
import { VARIANTS } from '../catalog/usage';
import { RATE_LIMITED } from '../health/credentials';
import type { UpstreamHealth } from '../health/health';
import { type CostFactors, type Extra, isUnpriced, type ToolUse } from '../protocols/cost-factors';
import type { NeededModel } from '../protocols/request-table';
import type { Call, CallFields, ModelRequest, PinnedPlace } from './call';

const NO_TOOLS: readonly ToolUse[] = [];

type PricedRequest = Pick<ModelRequest, 'reading' | 'refusesUnpriced'>;

/**
 * Removes candidates that have no price for what a call uses. If no candidate has a price for a tool or another extra that the vendor
 * charges separately, keeps those whose upstream allows unpriced extras.
 * @throws MODEL_NOT_PRICED when none is left
 */
export function pricedCandidates(candidates: readonly Candidate[], asked: PricedRequest): readonly Candidate[] {
  const { toolUses, extras } = asked.reading;
  let left = candidates;
  for (const tool of toolUses ?? NO_TOOLS)
    left = preferPriced(left, asked, ({ model }) => !isUnpriced(tool, model), tool.meter ?? '', tool.param);
  for (const extra of extras ?? NO_EXTRAS)
    left = preferPriced(left, asked, (candidate) => isPriced(extra, candidate), extra.name, extra.param);
  return withVariants(left, asked.reading);
}

function preferPriced(
  candidates: readonly Candidate[],
  { refusesUnpriced }: PricedRequest,
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

/** A model that the upstream may run for a call in addition to the requested one, at the customer's price. */
interface FurtherModel extends Pick<NeededModel, 'maxOutputTokens'> {
  readonly model: ModelEntry;
}

/** Returns the models of the candidate's upstream that a call may use in addition to the requested one. */
export function furtherModels(
  models: readonly NeededModel[],
  { upstream, priceOf = upstreamPrice }: Pick<Candidate, 'upstream' | 'priceOf'>,
): readonly FurtherModel[] {
  return models.flatMap(({ model: name, maxOutputTokens }) => {
    const model = entryNamed(upstream.models, name);
    return model === undefined ? [] : [{ model: { ...model, price: priceOf(model) }, maxOutputTokens }];
  });
}

const NO_EXTRAS: readonly Extra[] = [];
const NOTHING: readonly string[] = [];

/** Returns the names of a call's extras (what the vendor charges separately) that the candidate has no price for and no usage report counts. */
export function unpricedUnseen({ extras = NO_EXTRAS }: CostFactors, candidate: Candidate): readonly string[] {
  if (extras.length === 0) return NOTHING;
  // Skips extras (items that the vendor charges separately) that have meters, because usage reports count the tokens of those extras.
  return extras.flatMap((extra) => (extra.meters !== undefined || isPriced(extra, candidate) ? [] : extra.name));
}

function withVariants(candidates: readonly Candidate[], { asked }: CostFactors): readonly Candidate[] {
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

/** The member of a request that selects each kind of variant (service tier, speed, region). All protocols use the same member names. */
const MEMBERS = { tier: 'service_tier', speed: 'speed', geo: 'inference_geo' } as const;

/** Rejects a call if its key may not use the model. Reads the key's settings again before it rejects, because newer ones may allow the model. */
export function assertAllowed(
  { catalog, keys }: { readonly catalog: Catalog; readonly keys: ApiKeys },
  key: CallKey,
  candidates: readonly Pick<Candidate, 'model'>[],
  { modelRequested }: ModelRequest,
): MaybeLater<void> {
  if (isAllowed(catalog, candidates, key.settings.allowedModels)) return undefined;
  return keys.confirm(key).then(({ settings }) => {
    if (!isAllowed(catalog, candidates, settings.allowedModels)) throw notAllowed(modelRequested);
  });
}

function notAllowed(modelRequested: string): GatewayError {
  return fail('MODEL_NOT_ALLOWED', {
    param: 'model',
    message: `This API key may not call the model "${shortenName(modelRequested)}". GET /v1/models lists the models that it may call.`,
  });
}

/**
 * Returns the model entries that the settings of the client's key must allow. If a rollout replaces the model, these are still the entries
 * of the model name in the request.
 */
export function askedFor(
  { catalog }: { readonly catalog: Catalog },
  { candidates, request, facts }: Pick<Call, 'facts'> & Pick<CallFields, 'candidates' | 'request'>,
): readonly Pick<Candidate, 'model'>[] {
  if (facts.rollout === undefined || facts.rollout === null) return candidates;
  const lookup = catalog.find(request.modelRequested);
  return 'found' in lookup ? lookup.found.entries : candidates;
}

/** Returns an error if none of these upstreams accepts the call's protocol version; undefined if one accepts it, or if there is no upstream. */
export function refusedVersion(
  upstreams: readonly Pick<Upstream, 'versions'>[],
  request: Pick<ModelRequest, 'protocol' | 'headers'>,
): GatewayError | undefined {
  const version = versionOf(request);
  if (upstreams.length === 0 || upstreams.some((each) => takesVersion(each, version))) return undefined;
  const taken = [...new Set(upstreams.flatMap(({ versions }) => [...(versions ?? [])]))].sort();
  const param = 'anthropic-version';
  return invalidParam(param, `expected ${taken.join(' or ')}, which the upstreams of this model take`);
}

/**
 * Returns the candidate whose upstream stores the vendor object that a call names, with the credential that created the object. Ejected
 * upstreams (paused after failures) are not excluded, because no other candidate can answer.
 * @throws MODEL_NOT_SUPPORTED, ALL_PROVIDERS_FAILED, UPSTREAM_RATE_LIMITED
 */
export function keptCandidate<C extends Pick<Candidate, 'upstream'>>(
  candidates: readonly C[],
  kept: PinnedPlace,
  health: UpstreamHealth,
): C {
  const candidate = candidates.find(({ upstream }) => upstream.name === kept.upstream);
  const credential = candidate?.upstream.credentials.find(({ name }) => name === kept.credential);
  if (candidate === undefined || credential === undefined)
    throw fail('MODEL_NOT_SUPPORTED', {
      param: 'model',
      message: `The object that "${kept.param}" names is stored at another upstream or with another credential than this model uses. Use the model that created it.`,
    });
  const { name } = candidate.upstream;
  const gauge = health.upstream(name);
  const { isDisabledByOperator } = gauge;
  if (isDisabledByOperator)
    throw fail('ALL_PROVIDERS_FAILED', {
      message: `The upstream that stores the object named by "${kept.param}" is unavailable. Retry later.`,
      details: { attempts: [{ upstream: name, outcome: 'disabled by an operator' }] },
      retryable: false,
    });
  const { refusedWith, restsUntilMs } = gauge.credential(credential.name);
  const isLimited = candidate.upstream.credentials.length > 1 && refusedWith === RATE_LIMITED;
  const restsForMs = (isLimited ? restsUntilMs : gauge.restsUntilMs) - health.now();
  if (restsForMs > 0)
    throw fail('UPSTREAM_RATE_LIMITED', {
      message: `The upstream that stores the object named by "${kept.param}" is rate limited. Retry later.`,
      retryAfterSeconds: Math.ceil(restsForMs / 1_000),
    });
  return { ...candidate, upstream: pinnedTo(candidate.upstream, credential) };
}

/** Returns the estimated input tokens of a call at a model. The limit is the context window; for an embeddings call, each input has that limit. */
export function estimatedInput(
  { inputTokensEstimate, inputs = 1 }: Pick<ModelRequest, 'inputTokensEstimate' | 'inputs'>,
  { context = Number.POSITIVE_INFINITY }: Partial<Pick<ModelEntry, 'context'>> = {},
): number {
  return Math.min(inputTokensEstimate, context * inputs);
}
