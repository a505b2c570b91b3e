import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { listOf, objectWith, oneOf, orNull, shape } from '../../../core/http/shape';
import { MODELS_QUERY, pageOfModels, readModelsQuery } from '../page';
import { callableModels, type Parts } from './callable-models';
import { MODEL } from './model';

const MODELS = objectWith(
  {
    object: oneOf('list'),
    data: listOf(MODEL),
    first_id: orNull(shape.text),
    last_id: orNull(shape.text),
    has_more: shape.yes,
  },
  {
    models: { ...listOf({ type: 'object' }), maxItems: 0, description: 'For Codex, which asks with `client_version`.' },
  },
);

export function listModelsRoute(gateway: Parts, prefix: string): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: `${prefix}/v1/models`,
    summary: 'Every model this key can call now.',
    query: MODELS_QUERY,
    answers: { 200: { description: 'The models, in the shape both SDKs read.', schema: MODELS } },
    handle: async ({ key, query }, request, response) => {
      const { client_version: codex, ...asked } = readModelsQuery(query);
      const show = callableModels(gateway, prefix, key, request);
      const { items: data, hasMore } = pageOfModels(gateway.catalog, asked, show);
      sendJson(response, 200, {
        object: 'list',
        data,
        first_id: data.at(0)?.id ?? null,
        last_id: data.at(-1)?.id ?? null,
        has_more: hasMore,
        ...(codex === undefined ? {} : { models: NOTHING_FOR_CODEX }),
      });
    },
  };
}

/**
 * The empty `models` member, because Codex cannot read a list without it. An entry would replace what Codex knows of the model,
 * such as its instructions, which the gateway does not have.
 */
const NOTHING_FOR_CODEX: readonly object[] = [];
