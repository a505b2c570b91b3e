import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { sendJson } from '../../../core/http/http';
import { readUpstream, requireUpstream, UPSTREAM } from './upstream';

export function showUpstreamRoute(gateway: PluginGateway): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/upstreams/{name}',
    summary: 'One upstream.',
    answers: { 200: { description: 'The upstream.', schema: UPSTREAM } },
    handle: async ({ params }, _request, response) =>
      sendJson(response, 200, await readUpstream(gateway, requireUpstream(gateway, params['name']))),
  };
}
