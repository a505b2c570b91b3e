import { readAccountRow } from '../../../core/accounts/accounts';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { sendJson } from '../../../core/http/http';
import { object } from '../../../core/http/shape';
import { CATALOG_FIELDS, type Parts, showCatalog } from './catalog';

export function showCatalogRoute(gateway: Parts & Pick<PluginGateway, 'database'>): Route {
  return {
    listener: 'public',
    auth: 'session',
    method: 'GET',
    path: '/console/api/catalog',
    summary: 'The models and upstreams, for lists to choose from.',
    answers: { 200: { description: 'The catalog.', schema: object(CATALOG_FIELDS) } },
    handle: async ({ accountId }, request, response) => {
      const { markup } = await readAccountRow(gateway.database, accountId);
      sendJson(response, 200, showCatalog(gateway, request, markup ?? undefined));
    },
  };
}
