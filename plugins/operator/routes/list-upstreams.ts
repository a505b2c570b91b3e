import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { listDisabledUpstreams } from '../../../core/health/disabled-upstreams';
import { sendJson } from '../../../core/http/http';
import { pageOf as pageShape } from '../../../core/http/shape';
import { showUpstream, UPSTREAM } from './upstream';

export function listUpstreamsRoute(gateway: PluginGateway): Route {
  const { database, health } = gateway;
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/upstreams',
    summary: 'Every upstream with its health, its prices and whether it is disabled or ejected.',
    answers: { 200: { description: 'All upstreams.', schema: pageShape(UPSTREAM) } },
    handle: async (_visit, _request, response) => {
      const disabled = await listDisabledUpstreams(database);
      const items = gateway.catalog.upstreams.map((each) => showUpstream(each, health, disabled.get(each.name)));
      sendJson(response, 200, { items, nextCursor: null });
    },
  };
}
