import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { listTakenOut } from '../../../core/health/taken-out-upstreams';
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
    summary: 'Every upstream with its health, prices and whether it is left out.',
    answers: { 200: { description: 'All upstreams.', schema: pageShape(UPSTREAM) } },
    handle: async (_visit, _request, response) => {
      const takenOut = await listTakenOut(database);
      const items = gateway.catalog.upstreams.map((each) => showUpstream(each, health, takenOut.get(each.name)));
      sendJson(response, 200, { items, nextCursor: null });
    },
  };
}
