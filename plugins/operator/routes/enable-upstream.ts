import { NOTHING } from '../../../core/api/fields';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { enableUpstream } from '../../../core/health/disabled-upstreams';
import { jsonBody, sendJson } from '../../../core/http/http';
import { readUpstream, requireUpstream, UPSTREAM } from './upstream';

export function enableUpstreamRoute(gateway: PluginGateway): Route {
  const readNothing = jsonBody<object>(NOTHING);
  return {
    listener: 'admin',
    role: 'write',
    method: 'POST',
    path: '/admin/v1/upstreams/{name}/enable',
    summary: 'Enable an upstream that an operator disabled, and end its ejection.',
    body: NOTHING,
    answers: { 200: { description: 'The upstream.', schema: UPSTREAM } },
    handle: async ({ params, operator }, request, response) => {
      const upstream = requireUpstream(gateway, params['name']);
      await readNothing(request);
      await enableUpstream(gateway, upstream.name, operator.actor);
      sendJson(response, 200, await readUpstream(gateway, upstream));
    },
  };
}
