import { TEXT } from '../../../core/api/fields';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { disableUpstream } from '../../../core/health/disabled-upstreams';
import { jsonBody, sendJson } from '../../../core/http/http';
import type { Settings } from '../../../core/settings';
import { readUpstream, requireUpstream, UPSTREAM } from './upstream';

const DISABLE = {
  type: 'object',
  additionalProperties: false,
  properties: { reason: TEXT },
  example: { reason: 'maintenance until noon' },
} as const;

export function disableUpstreamRoute(gateway: PluginGateway): Route {
  const readDisable = jsonBody<Settings<typeof DISABLE>>(DISABLE);
  return {
    listener: 'admin',
    role: 'write',
    method: 'POST',
    path: '/admin/v1/upstreams/{name}/disable',
    summary: 'Disable an upstream on every node until it is enabled.',
    body: DISABLE,
    answers: { 200: { description: 'The upstream.', schema: UPSTREAM } },
    handle: async ({ params, operator }, request, response) => {
      const upstream = requireUpstream(gateway, params['name']);
      const { reason } = await readDisable(request);
      await disableUpstream(gateway, upstream.name, { actor: operator.actor, reason });
      sendJson(response, 200, await readUpstream(gateway, upstream));
    },
  };
}
