import { fail } from '../../core/errors';
import type { Gateway } from '../../core/gateway';
import { sendJson } from '../../core/http';
import type { KeyHandler, Route } from '../../core/plugin';
import { listOf, object, oneOf, orNull, shape } from '../../core/shape';
import { isRoutable, MODEL, toJson } from './model';

/** The list is the same under every strategy: clients ask below the base address they call. */
const PREFIXES = ['', '/default', '/quality', '/speed', '/cost'];

/** The catalogue is read with each request: it changes with the configuration. */
export function modelRoutes(gateway: Pick<Gateway, 'catalog'>): Route[] {
  const list: KeyHandler = async (_visit, _request, response) => {
    const data = gateway.catalog.models.filter(isRoutable).map(toJson);
    sendJson(response, 200, {
      object: 'list',
      data,
      first_id: data.at(0)?.id ?? null,
      last_id: data.at(-1)?.id ?? null,
      has_more: false,
    });
  };

  const show: KeyHandler = async ({ params }, _request, response) => {
    const lookup = gateway.catalog.find(params['id'] ?? '');
    if ('ambiguous' in lookup) throw fail('MODEL_AMBIGUOUS', { details: { models: lookup.ambiguous } });
    if ('unknown' in lookup || !isRoutable(lookup.found)) {
      throw fail('NOT_FOUND', { message: 'There is no such model.' });
    }
    sendJson(response, 200, toJson(lookup.found));
  };

  return PREFIXES.flatMap((prefix): Route[] => [
    {
      listener: 'public',
      auth: 'key',
      method: 'GET',
      path: `${prefix}/v1/models`,
      summary: 'Every model that can be routed now.',
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
      handle: show,
    },
  ]);
}
