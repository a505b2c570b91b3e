import type { Route } from '../../../core/api/route';
import { PROTOCOL_NAMES } from '../../../core/catalog/protocols';
import { sendJson } from '../../../core/http/http';
import { object, shape } from '../../../core/http/shape';

export function showCardRoute(): Route {
  return {
    listener: 'public',
    auth: 'none',
    method: 'GET',
    path: '/',
    summary: 'A short card of the service.',
    answers: { 200: { description: 'The card.', schema: CARD } },
    handle: async (_visit, _request, response) => {
      sendJson(response, 200, {
        name: 'Tollgate',
        protocols: PROTOCOL_NAMES,
        models: '/v1/models',
        document: '/openapi.json',
        health: '/healthz',
        ready: '/readyz',
      });
    },
  };
}

const CARD = object({
  name: shape.text,
  protocols: shape.texts,
  models: shape.text,
  document: shape.text,
  health: shape.text,
  ready: shape.text,
});
