import type { Knex } from 'knex';
import { sessionRoute } from '../../../core/api/json-routes';
import type { Route, SessionHandler } from '../../../core/api/route';
import { fail } from '../../../core/base/errors';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { EVERYONE, MANAGERS, type MemberRole, OVERSEERS } from '../../../core/sign-in/member-roles';
import { updateUser } from '../../../core/sign-in/users';
import { idIs } from '../../../core/storage/page';
import { USER, USER_ROLE } from './users';

/**
 * The routes of operators that the console has too, each for the account of the signed-in user: its path under /console/api, and the roles
 * that may ask. Queries, bodies and answers are those of the operator's route.
 */
const SERVED: readonly (readonly [at: string, path: string, roles: readonly MemberRole[]])[] = [
  ['GET /admin/v1/accounts/{accountId}/teams', 'teams', EVERYONE],
  ['POST /admin/v1/accounts/{accountId}/teams', 'teams', MANAGERS],
  ['PATCH /admin/v1/teams/{teamId}', 'teams/{teamId}', MANAGERS],
  ['DELETE /admin/v1/teams/{teamId}', 'teams/{teamId}', MANAGERS],
  ['PUT /admin/v1/teams/{teamId}/members/{userId}', 'teams/{teamId}/members/{userId}', MANAGERS],
  ['DELETE /admin/v1/teams/{teamId}/members/{userId}', 'teams/{teamId}/members/{userId}', MANAGERS],
  ['GET /admin/v1/accounts/{accountId}/users', 'members', EVERYONE],
  ['DELETE /admin/v1/users/{userId}', 'members/{userId}', MANAGERS],
  ['POST /admin/v1/accounts/{accountId}/invitations', 'invitations', MANAGERS],
  ['GET /admin/v1/accounts/{accountId}/invitations', 'invitations', MANAGERS],
  ['DELETE /admin/v1/invitations/{invitationId}', 'invitations/{invitationId}', MANAGERS],
  ['POST /admin/v1/accounts/{accountId}/budgets', 'budgets', MANAGERS],
  ['GET /admin/v1/accounts/{accountId}/budgets', 'budgets', EVERYONE],
  ['GET /admin/v1/budgets/{budgetId}', 'budgets/{budgetId}', EVERYONE],
  ['PATCH /admin/v1/budgets/{budgetId}', 'budgets/{budgetId}', MANAGERS],
  ['DELETE /admin/v1/budgets/{budgetId}', 'budgets/{budgetId}', MANAGERS],
  ['POST /admin/v1/accounts/{accountId}/webhooks', 'webhooks', MANAGERS],
  ['GET /admin/v1/accounts/{accountId}/webhooks', 'webhooks', OVERSEERS],
  ['PATCH /admin/v1/webhooks/{webhookId}', 'webhooks/{webhookId}', MANAGERS],
  ['DELETE /admin/v1/webhooks/{webhookId}', 'webhooks/{webhookId}', MANAGERS],
  ['POST /admin/v1/webhooks/{webhookId}/rotate', 'webhooks/{webhookId}/rotate', MANAGERS],
  ['POST /admin/v1/webhooks/{webhookId}/test', 'webhooks/{webhookId}/test', MANAGERS],
  ['GET /admin/v1/webhooks/{webhookId}/deliveries', 'webhooks/{webhookId}/deliveries', OVERSEERS],
  [
    'POST /admin/v1/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver',
    'webhooks/{webhookId}/deliveries/{deliveryId}/redeliver',
    MANAGERS,
  ],
];

/** The tables of what the ids in these paths name. Each has the columns `id` and `account_id`. */
const TABLES: Readonly<Record<string, string>> = {
  teamId: 'teams',
  userId: 'users',
  invitationId: 'invitations',
  budgetId: 'budgets',
  webhookId: 'webhooks',
};

/** The ids that name a part of what another id in the path names, which the route itself checks. */
const PARTS: readonly string[] = ['deliveryId'];

/** Lists the routes of members, invitations, teams and budgets in the console; docs/console.md. */
export function consoleAccountRoutes({ database }: PluginGateway, routes: readonly Route[]): readonly Route[] {
  const served = SERVED.map(([at, path, roles]) => {
    const route = routes.find(({ method, path: own }) => `${method} ${own}` === at);
    if (route === undefined) throw new Error(`the console serves ${at}, but the operator's API has no such route`);
    return asConsoleRoute(route, path, roles);
  });
  return [...served, changeRoleRoute(database)].map((route) => onlyOwn(database, route));
}

/** Returns a route of operators at a path of the console, for the account of the signed-in user. */
function asConsoleRoute(route: Route, path: string, roles: readonly MemberRole[]): Route {
  if (route.listener !== 'admin' || route.auth !== undefined) throw new Error(`${route.path} is not for operators`);
  const { handle, role: _role, ...shared } = route;
  return {
    ...shared,
    listener: 'public',
    auth: 'session',
    path: `/console/api/${path}`,
    roles,
    errors: ['NOT_FOUND', ...(shared.errors ?? [])],
    handle: async ({ accountId, session, params, ...visit }, request, response) => {
      const { id, email } = session.user;
      const operator = { name: email, role: 'write', actor: `user:${id}`, expiresAt: undefined } as const;
      await handle({ ...visit, params: { ...params, accountId }, operator, session }, request, response);
    },
  };
}

/** The users of an account change roles only; passwords and the status are the operator's. */
function changeRoleRoute(database: Knex): Route {
  return sessionRoute('PATCH /console/api/members/{userId}', {
    roles: MANAGERS,
    summary: 'Changes the role of a member.',
    body: { type: 'object', additionalProperties: false, required: ['role'], properties: { role: USER_ROLE } },
    answers: { 200: { description: 'The member.', schema: USER } },
    errors: ['CONFLICT'],
    handle: ({ params, body: { role }, session: { user } }) =>
      updateUser(database, params.userId, { role }, { actor: `user:${user.id}`, userId: user.id, role: user.role }),
  });
}

/** Returns the route with a check, before the body is read, that all that its path names belongs to the account of the user. */
function onlyOwn(database: Knex, route: Route): Route {
  if (route.listener !== 'public' || route.auth !== 'session') throw new Error(`${route.path} needs no session`);
  const checked: SessionHandler = async (visit, request, response) => {
    await requireOwn(database, visit.accountId, visit.params);
    await route.handle(visit, request, response);
  };
  return { ...route, handle: checked };
}

/** Checks that all that the ids in a path name belongs to the account. @throws NOT_FOUND */
async function requireOwn(database: Knex, accountId: string, params: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, id] of Object.entries(params)) {
    if (PARTS.includes(name)) continue;
    const table = TABLES[name];
    if (table === undefined) throw new Error(`no table is known for {${name}}`);
    const own = await database(table)
      .where({ ...idIs(id), account_id: accountId })
      .first('id');
    if (own === undefined) throw fail('NOT_FOUND', { message: `The account has no ${name.replace('Id', '')} ${id}.` });
  }
}
