import { TEXT } from '../../../core/api/fields';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { jsonBody, sendJson } from '../../../core/http/http';
import type { Settings } from '../../../core/settings';
import type { Engine } from '../engine';
import { give, type Order } from '../orders';
import { SHOWN_ROLLOUT } from '../show';
import { readRollouts, requireRollout } from './rollout';

const GIVEN = {
  type: 'object',
  additionalProperties: false,
  properties: {
    reason: TEXT,
    stage: {
      description: 'Applies only if the rollout is at this stage; otherwise 409.',
      type: 'integer',
      minimum: 1,
    },
  },
  example: { reason: 'too slow at noon' },
} as const;

/** The endpoints that give an order. They differ only in that order. */
const ORDERS: Readonly<Record<Order, string>> = {
  pause: 'Pause a rollout: its share stays, and its guards stay active.',
  resume: 'Continue a rollout that was paused or held; one that was rolled back starts again.',
  promote: 'Start the next stage of a rollout now; after the last one it is completed.',
  rollback: 'Serve everybody as before, from the next call on.',
};

export function orderRolloutRoute(gateway: PluginGateway, engine: Engine, order: Order): Route {
  const readGiven = jsonBody<Settings<typeof GIVEN>>(GIVEN);
  return {
    listener: 'admin',
    role: 'write',
    method: 'POST',
    path: `/admin/v1/rollouts/{name}/${order}`,
    summary: ORDERS[order],
    body: GIVEN,
    answers: { 200: { description: 'The rollout.', schema: SHOWN_ROLLOUT } },
    errors: ['CONFLICT'],
    handle: async ({ params, operator }, request, response) => {
      const rollout = requireRollout(gateway, params['name']);
      const { reason, stage } = await readGiven(request);
      await give(gateway.database, rollout, { order, actor: operator.actor, reason, stage });
      await engine.follow();
      const [shown] = await readRollouts(gateway.database, [rollout]);
      sendJson(response, 200, shown);
    },
  };
}
