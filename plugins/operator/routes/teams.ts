import {
  addTeamMember,
  createTeam,
  deleteTeam,
  listTeams,
  removeTeamMember,
  renameTeam,
  type Team,
} from '../../../core/accounts/teams';
import { NOTHING, TEXT } from '../../../core/api/fields';
import { adminRoute } from '../../../core/api/json-routes';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { PAGE_READERS, pageOf } from '../../../core/http/query';
import { listOf, object, pageShape, shape } from '../../../core/http/shape';

function showTeam({ id, accountId, name, members, createdAt }: Team): object {
  return { id, accountId, name, members, createdAt: createdAt.toISOString() };
}

/** The result of `showTeam` in the OpenAPI document. */
const TEAM = object({
  id: shape.uuid,
  accountId: shape.uuid,
  name: shape.text,
  members: listOf(shape.uuid),
  createdAt: shape.time,
});

const TEAM_BODY = {
  type: 'object',
  additionalProperties: false,
  required: ['name'],
  properties: { name: TEXT },
  example: { name: 'research' },
} as const;

const SHOWN = { 200: { description: 'The team.', schema: TEAM } };

export function teamRoutes(gateway: PluginGateway): readonly Route[] {
  const { database } = gateway;
  return [
    adminRoute('POST /admin/v1/accounts/{accountId}/teams', {
      role: 'write',
      summary: 'Create a team of an account.',
      body: TEAM_BODY,
      answers: { 201: SHOWN[200] },
      errors: ['CONFLICT', 'LEDGER_UNAVAILABLE'],
      handle: async ({ body, params, operator }) =>
        showTeam(await createTeam(gateway, params.accountId, body, operator.actor)),
    }),
    adminRoute('GET /admin/v1/accounts/{accountId}/teams', {
      role: 'read',
      summary: 'List the teams of an account with their members, newest first.',
      query: PAGE_READERS,
      answers: { 200: { description: 'A page of teams.', schema: pageShape(TEAM) } },
      handle: async ({ params, filters }) => {
        const { items, nextCursor } = await listTeams(database, params.accountId, pageOf(filters));
        return { items: items.map(showTeam), nextCursor };
      },
    }),
    adminRoute('PATCH /admin/v1/teams/{teamId}', {
      role: 'write',
      summary: 'Rename a team.',
      body: TEAM_BODY,
      answers: SHOWN,
      errors: ['CONFLICT', 'LEDGER_UNAVAILABLE'],
      handle: async ({ body, params, operator }) =>
        showTeam(await renameTeam(gateway, params.teamId, body, operator.actor)),
    }),
    adminRoute('DELETE /admin/v1/teams/{teamId}', {
      role: 'write',
      summary: 'Delete a team that has no active keys, with its budgets.',
      answers: SHOWN,
      errors: ['CONFLICT', 'LEDGER_UNAVAILABLE'],
      handle: async ({ params, operator }) => showTeam(await deleteTeam(gateway, params.teamId, operator.actor)),
    }),
    adminRoute('PUT /admin/v1/teams/{teamId}/members/{userId}', {
      role: 'write',
      summary: 'Add a user of the account to a team.',
      body: NOTHING,
      answers: SHOWN,
      handle: async ({ params: { teamId, userId }, operator }) =>
        showTeam(await addTeamMember(database, teamId, userId, operator.actor)),
    }),
    adminRoute('DELETE /admin/v1/teams/{teamId}/members/{userId}', {
      role: 'write',
      summary: 'Remove a user from a team; the keys of the user stay as they are.',
      answers: SHOWN,
      handle: async ({ params: { teamId, userId }, operator }) =>
        showTeam(await removeTeamMember(database, teamId, userId, operator.actor)),
    }),
  ];
}
