import type { CallKey } from '../../core/call';
import { isAllowed, type Model } from '../../core/catalog';
import { fail } from '../../core/errors';
import type { Gateway } from '../../core/gateway';
import { sendJson } from '../../core/http';
import type { KeyHandler, Route } from '../../core/plugin';
import { routableEntries } from '../../core/routable-entries';
import { listOf, object, oneOf, orNull, shape } from '../../core/shape';
import { MODEL, toJson } from './model';

/** The list is the same under every strategy: clients ask below the base address they call. */
const PREFIXES = ['', '/default', '/quality', '/speed', '/cost'];

/**
 * What this key can call now. The catalogue is read with each request: it changes with the configuration. A model the key may
 * not call is not there for it.
 */
export function modelRoutes(gateway: Pick<Gateway, 'catalog' | 'health'>): Route[] {
  const show = (model: Model, key: CallKey) => {
    const entries = routableEntries(model, gateway.health);
    const isCallable = entries.length > 0 && isAllowed(gateway.catalog, entries, key.settings.allowedModels);
    return isCallable ? toJson(model, entries, gateway.health) : undefined;
  };

  const list: KeyHandler = async ({ key }, _request, response) => {
    const data = gateway.catalog.models.flatMap((model) => show(model, key) ?? []);
    sendJson(response, 200, {
      object: 'list',
      data,
      first_id: data.at(0)?.id ?? null,
      last_id: data.at(-1)?.id ?? null,
      has_more: false,
    });
  };

  const showOne: KeyHandler = async ({ params, key }, _request, response) => {
    const lookup = gateway.catalog.find(params['id'] ?? '');
    if ('ambiguous' in lookup) throw fail('MODEL_AMBIGUOUS', { details: { models: lookup.ambiguous } });
    const shown = 'found' in lookup ? show(lookup.found, key) : undefined;
    if (shown === undefined) throw fail('NOT_FOUND', { message: 'There is no such model.' });
    sendJson(response, 200, shown);
  };

  return PREFIXES.flatMap((prefix): Route[] => [
    {
      listener: 'public',
      auth: 'key',
      method: 'GET',
      path: `${prefix}/v1/models`,
      summary: 'Every model this key can call now.',
      answers: {
        200: {
          description: 'The models, in the shape both SDKs read.',
          schema: object({
            object: oneOf('list'),
            data: listOf(MODEL),
            first_id: orNull(shape.text),
            last_id: orNull(shape.text),
            has_more: shape.yes,
          }),
        },
      },
      handle: list,
    },
    {
      listener: 'public',
      auth: 'key',
      method: 'GET',
      path: `${prefix}/v1/models/{id...}`,
      summary: 'One model; its name may hold slashes.',
      answers: { 200: { description: 'The model.', schema: MODEL } },
      errors: ['MODEL_AMBIGUOUS'],
      handle: showOne,
    },
  ]);
}
