import type { ApiKeys, CallKey } from '../accounts/identify';
import { type Candidate, type Catalog, isAllowed } from '../catalog/catalog';
import { shortenName } from '../catalog/model-names';
import { fail } from '../errors';
import type { Call, CallFields, ModelRequest } from './call';

/** Rejects a model that the key may not call. It reads the key again first, because a newer version may allow the model. */
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

/** Returns the models that the key must allow for a call. These belong to the name in the request, even if a rollout changes the model. */
export function askedFor(
  { catalog }: { readonly catalog: Catalog },
  { candidates, request, facts }: Pick<Call, 'facts'> & Pick<CallFields, 'candidates' | 'request'>,
): readonly Pick<Candidate, 'model'>[] {
  if (facts.rollout === undefined || facts.rollout === null) return candidates;
  const lookup = catalog.find(request.modelRequested);
  return 'found' in lookup ? lookup.found.entries : candidates;
}
