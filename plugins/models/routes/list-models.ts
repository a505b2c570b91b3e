import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { listOf, object, oneOf, orNull, shape } from '../../../core/http/shape';
import { callableModels, type Parts } from './callable-models';
import { MODEL } from './model';

const MODELS = object({
  object: oneOf('list'),
  data: listOf(MODEL),
  first_id: orNull(shape.text),
  last_id: orNull(shape.text),
  has_more: shape.yes,
});

export function listModelsRoute(gateway: Parts, prefix: string): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: `${prefix}/v1/models`,
    summary: 'Every model this key can call now.',
    answers: { 200: { description: 'The models, in the shape both SDKs read.', schema: MODELS } },
    handle: async ({ key }, request, response) => {
      const show = callableModels(gateway, prefix, key, request);
      const data = gateway.catalog.models.flatMap((model) => show(model) ?? []);
      sendJson(response, 200, {
        object: 'list',
        data,
        first_id: data.at(0)?.id ?? null,
        last_id: data.at(-1)?.id ?? null,
        has_more: false,
      });
    },
  };
}
