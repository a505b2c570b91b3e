import type { Knex } from 'knex';
import { TEXT } from '../../core/api/fields';
import type { Route } from '../../core/api/route';
import { fail } from '../../core/errors';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';
import { jsonBody, sendJson } from '../../core/http/http';
import { pageOf } from '../../core/http/shape';
import type { Rollout } from '../../core/rollouts/rollout';
import type { Settings } from '../../core/settings';
import type { Engine } from './engine';
import { give, type Order } from './orders';
import { SHOWN_ROLLOUT, showRollout } from './show';
import { readNow, readRows, readSeen } from './store';

/** Lists the endpoints of rollouts. */
export function rolloutRoutes(gateway: PluginGateway, engine: Engine): readonly Route[] {
  return [
    listRolloutsRoute(gateway),
    showRolloutRoute(gateway),
    orderRolloutRoute(gateway, engine, 'pause'),
    orderRolloutRoute(gateway, engine, 'resume'),
    orderRolloutRoute(gateway, engine, 'promote'),
    orderRolloutRoute(gateway, engine, 'rollback'),
  ];
}

function listRolloutsRoute(gateway: PluginGateway): Route {
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

function orderRolloutRoute(gateway: PluginGateway, engine: Engine, order: Order): Route {
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

/** Finds a rollout of the configuration in force. @throws NOT_FOUND */
function requireRollout({ configuration }: PluginGateway, name: string | undefined): Rollout {
  const rollout = configuration.rollouts.find((each) => each.name === name);
  if (rollout === undefined) throw fail('NOT_FOUND', { message: 'The configuration has no rollout with this name.' });
  return rollout;
}

/** Shows rollouts with their progress and the counts of both groups. */
export async function readRollouts(database: Knex, rollouts: readonly Rollout[]) {
  const rows = await readRows(database);
  const now = await readNow(database);
  return Promise.all(
    rollouts.map(async (rollout) => {
      const row = rows.get(rollout.name);
      const own = row?.definition === rollout.definition ? row : undefined;
      const seen = own === undefined ? () => undefined : await readSeen(database, own.run);
      return showRollout(rollout, own, seen, now.getTime());
    }),
  );
}

function showRolloutRoute(gateway: PluginGateway): Route {
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
