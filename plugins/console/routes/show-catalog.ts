import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { object } from '../../../core/http/shape';
import { CATALOG_FIELDS, type Parts, showCatalog } from './catalog';

export function showCatalogRoute(gateway: Parts): Route {
  return {
    listener: 'public',
    auth: 'session',
    method: 'GET',
    path: '/console/api/catalog',
    summary: 'The models and upstreams, for lists to choose from.',
    answers: { 200: { description: 'The catalog.', schema: object(CATALOG_FIELDS) } },
    handle: async (_visit, request, response) => sendJson(response, 200, showCatalog(gateway, request)),
  };
}
