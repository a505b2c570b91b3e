import type { ApiKeys, CallKey } from '../accounts/identify';
import { type Candidate, type Catalog, isAllowed } from '../catalog/catalog';
import { shortenName } from '../catalog/model-names';
import { fail } from '../errors';
import type { Call, CallFields, ModelRequest } from './call';

/**
 * Refuses a model the key may not call. The node's copy of the key may be older than a change that allows the model: before
 * refusing it is read again.
 */
export async function assertAllowed(
  { catalog, keys }: { readonly catalog: Catalog; readonly keys: ApiKeys },
  key: CallKey,
  candidates: readonly Pick<Candidate, 'model'>[],
  { modelRequested }: ModelRequest,
): Promise<void> {
  if (isAllowed(catalog, candidates, key.settings.allowedModels)) return;
  const { settings } = await keys.confirm(key);
  if (isAllowed(catalog, candidates, settings.allowedModels)) return;
  throw fail('MODEL_NOT_ALLOWED', {
    param: 'model',
    message: `This API key may not call the model "${shortenName(modelRequested)}". GET /v1/models lists the models that it may call.`,
  });
}

/** What a key must be allowed for a call: what it asks for, whatever a rollout puts in its place. */
export function askedFor(
  { catalog }: { readonly catalog: Catalog },
  { candidates, request, facts }: Pick<Call, 'facts'> & Pick<CallFields, 'candidates' | 'request'>,
): readonly Pick<Candidate, 'model'>[] {
  if (facts.rollout === undefined || facts.rollout === null) return candidates;
  const lookup = catalog.find(request.modelRequested);
  return 'found' in lookup ? lookup.found.entries : candidates;
}
