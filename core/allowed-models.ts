import type { CallKey, ModelRequest } from './call';
import { type Candidate, isAllowed } from './catalog';
import { fail } from './errors';
import type { Gateway } from './gateway';
import { shortenName } from './model-names';

/**
 * Refuses a model the key may not call. The node's copy of the key may be older than a change that allows the model: before
 * refusing it is read again.
 */
export async function assertAllowed(
  { catalog, keys }: Pick<Gateway, 'catalog' | 'keys'>,
  key: CallKey,
  candidates: readonly Candidate[],
  { modelRequested }: ModelRequest,
): Promise<void> {
  if (isAllowed(catalog, candidates, key.settings.allowedModels)) return;
  const { settings } = await keys.confirm(key);
  if (isAllowed(catalog, candidates, settings.allowedModels)) return;
  throw fail('MODEL_NOT_ALLOWED', {
    param: 'model',
    message: `This key may not call "${shortenName(modelRequested)}".`,
  });
}
