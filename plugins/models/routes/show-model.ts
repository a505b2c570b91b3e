import type { Route } from '../../../core/api/route';
import { fail } from '../../../core/errors';
import { sendJson } from '../../../core/http/http';
import { callableModels, type Parts } from './callable-models';
import { MODEL } from './model';

export function showModelRoute(gateway: Parts, prefix: string): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: `${prefix}/v1/models/{id...}`,
    summary: 'One model; its name may contain slashes.',
    answers: { 200: { description: 'The model.', schema: MODEL } },
    errors: ['MODEL_AMBIGUOUS'],
    handle: async ({ params, key }, request, response) => {
      const lookup = gateway.catalog.find(params['id'] ?? '');
      if ('ambiguous' in lookup) throw fail('MODEL_AMBIGUOUS', { details: { models: lookup.ambiguous } });
      const shown = 'found' in lookup ? callableModels(gateway, prefix, key, request)(lookup.found) : undefined;
      if (shown === undefined)
        throw fail('NOT_FOUND', { message: 'The model does not exist. GET /v1/models lists all models.' });
      sendJson(response, 200, shown);
    },
  };
}
