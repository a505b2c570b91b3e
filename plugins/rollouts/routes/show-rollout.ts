import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { sendJson } from '../../../core/http/http';
import { SHOWN_ROLLOUT } from '../show';
import { readRollouts, requireRollout } from './rollout';

export function showRolloutRoute(gateway: PluginGateway): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/rollouts/{name}',
    summary: 'One rollout.',
    answers: { 200: { description: 'The rollout.', schema: SHOWN_ROLLOUT } },
    handle: async ({ params }, _request, response) => {
      const [shown] = await readRollouts(gateway.database, [requireRollout(gateway, params['name'])]);
      sendJson(response, 200, shown);
    },
  };
}
