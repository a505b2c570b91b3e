import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { sendJson } from '../../../core/http/http';
import { pageOf } from '../../../core/http/shape';
import { SHOWN_ROLLOUT } from '../show';
import { readRollouts } from './rollout';

export function listRolloutsRoute(gateway: PluginGateway): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/rollouts',
    summary: 'Every rollout of the configuration with its progress and the results of both groups.',
    answers: { 200: { description: 'All rollouts.', schema: pageOf(SHOWN_ROLLOUT) } },
    handle: async (_visit, _request, response) => {
      const items = await readRollouts(gateway.database, gateway.configuration.rollouts);
      sendJson(response, 200, { items, nextCursor: null });
    },
  };
}
