import type { Knex } from 'knex';
import { TEXT } from '../../core/api/fields';
import { adminRoute } from '../../core/api/json-routes';
import type { Route } from '../../core/api/route';
import { fail } from '../../core/base/errors';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';
import { pageShape } from '../../core/http/shape';
import type { Rollout } from '../../core/rollouts/rollout';
import type { RolloutEngine } from './engine';
import { give, type Order } from './orders';
import { SHOWN_ROLLOUT, showRollout } from './show';
import { readNow, readRows, readSeen } from './store';

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

/** The endpoints through which an operator gives a rollout an order, such as `pause`. They differ only in that order. */
const ORDERS: readonly (readonly [Order, string])[] = [
  ['pause', 'Pause a rollout: its share stays, and its guards stay active.'],
  ['resume', 'Continue a rollout that was paused or held; one that was rolled back starts again.'],
  ['promote', 'Start the next stage of a rollout now; after the last one it is completed.'],
  ['rollback', 'Serve everybody as before, from the next call on.'],
];

const SHOWN = { 200: { description: 'The rollout.', schema: SHOWN_ROLLOUT } };

/** Finds a rollout of the configuration in force. @throws NOT_FOUND */
function requireRollout({ configuration }: PluginGateway, name: string): Rollout {
  const rollout = configuration.rollouts.find((each) => each.name === name);
  if (rollout === undefined) throw fail('NOT_FOUND', { message: 'The configuration has no rollout with this name.' });
  return rollout;
}

/** Shows rollouts with their progress and the counts of both groups. */
async function readRollouts(database: Knex, rollouts: readonly Rollout[]) {
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

/** Lists the endpoints of rollouts. */
export function rolloutRoutes(gateway: PluginGateway, engine: RolloutEngine): readonly Route[] {
  const { database } = gateway;
  const show = async (rollout: Rollout) => (await readRollouts(database, [rollout]))[0];
  return [
    adminRoute('GET /admin/v1/rollouts', {
      role: 'read',
      summary: 'Every rollout of the configuration with its progress and the results of both groups.',
      answers: { 200: { description: 'All rollouts.', schema: pageShape(SHOWN_ROLLOUT) } },
      handle: async () => ({ items: await readRollouts(database, gateway.configuration.rollouts), nextCursor: null }),
    }),
    adminRoute('GET /admin/v1/rollouts/{name}', {
      role: 'read',
      summary: 'One rollout.',
      answers: SHOWN,
      handle: ({ params }) => show(requireRollout(gateway, params.name)),
    }),
    ...ORDERS.map(([order, summary]) =>
      adminRoute(`POST /admin/v1/rollouts/{name}/${order}`, {
        role: 'write',
        summary,
        body: GIVEN,
        answers: SHOWN,
        errors: ['CONFLICT'],
        handle: async ({ params, operator, body: { reason, stage } }) => {
          const rollout = requireRollout(gateway, params.name);
          await give(database, rollout, { order, actor: operator.actor, reason, stage });
          await engine.follow();
          return show(rollout);
        },
      }),
    ),
  ];
}
