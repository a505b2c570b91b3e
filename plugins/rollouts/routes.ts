import { fail } from '../../core/errors';
import type { Gateway } from '../../core/gateway';
import { jsonBody, sendJson } from '../../core/http';
import type { Route, Visit } from '../../core/plugin';
import type { Rollout } from '../../core/rollout';
import type { Settings } from '../../core/settings';
import { pageOf } from '../../core/shape';
import type { Engine } from './engine';
import { give, type Order } from './orders';
import { SHOWN_ROLLOUT, showRollout } from './show';
import { readNow, readRows, readSeen } from './store';

/** Who is written into the audit log for what is done with the admin token. */
const ADMIN = 'admin';

const GIVEN = {
  type: 'object',
  additionalProperties: false,
  properties: {
    reason: {
      type: 'string',
      minLength: 1,
      maxLength: 200,
      pattern: '^[^\\p{Cc}\\p{Cs}]+$',
      'x-expected': 'text without control characters',
    },
    stage: {
      description: 'Only if it is at this stage: otherwise 409.',
      type: 'integer',
      minimum: 1,
    },
  },
  example: { reason: 'too slow at noon' },
} as const;

const ORDERS: Readonly<Record<Order, string>> = {
  pause: 'Stop the clock of a rollout: its share stays, its guards watch on.',
  resume: 'Go on with a rollout that was paused or held; one that was rolled back begins anew.',
  promote: 'Begin the next stage of a rollout now; after the last one it is completed.',
  rollback: 'Serve everybody as before, from the next call on.',
};

export function rolloutRoutes(gateway: Gateway, engine: Engine): Route[] {
  const { database } = gateway;
  const readGiven = jsonBody<Settings<typeof GIVEN>>(GIVEN);
  const find = ({ params }: Visit): Rollout => {
    const rollout = gateway.configuration.rollouts.find(({ name }) => name === params['name']);
    if (rollout === undefined) throw fail('NOT_FOUND', { message: 'There is no such rollout in the configuration.' });
    return rollout;
  };
  const show = async (rollouts: readonly Rollout[]) => {
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
  };

  return [
    {
      listener: 'admin',
      method: 'GET',
      path: '/admin/v1/rollouts',
      summary: 'Every rollout of the configuration with how far it has come and what was seen of both groups.',
      answers: { 200: { description: 'All rollouts.', schema: pageOf(SHOWN_ROLLOUT) } },
      handle: async (_visit, _request, response) =>
        sendJson(response, 200, { items: await show(gateway.configuration.rollouts), nextCursor: null }),
    },
    {
      listener: 'admin',
      method: 'GET',
      path: '/admin/v1/rollouts/{name}',
      summary: 'One rollout.',
      answers: { 200: { description: 'The rollout.', schema: SHOWN_ROLLOUT } },
      handle: async (visit, _request, response) => {
        const [shown] = await show([find(visit)]);
        sendJson(response, 200, shown);
      },
    },
    ...Object.entries(ORDERS).map(
      ([order, summary]): Route => ({
        listener: 'admin',
        method: 'POST',
        path: `/admin/v1/rollouts/{name}/${order}`,
        summary,
        body: GIVEN,
        answers: { 200: { description: 'The rollout.', schema: SHOWN_ROLLOUT } },
        errors: ['CONFLICT'],
        handle: async (visit, request, response) => {
          const rollout = find(visit);
          const { reason, stage } = await readGiven(request);
          await give(database, rollout, { order: order as Order, actor: ADMIN, reason, stage });
          await engine.follow();
          const [shown] = await show([rollout]);
          sendJson(response, 200, shown);
        },
      }),
    ),
  ];
}
