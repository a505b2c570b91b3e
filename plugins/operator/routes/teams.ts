import {
  addTeamMember,
  createTeam,
  deleteTeam,
  listTeams,
  removeTeamMember,
  type Team,
  updateTeam,
} from '../../../core/accounts/teams';
import {
  NOTHING,
  REQUIRE_CHANGE,
  REQUIRED_TAGS,
  readRequire,
  readRequiredTags,
  SHOWN_REQUIRE,
  TEXT,
} from '../../../core/api/fields';
import { adminRoute } from '../../../core/api/json-routes';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { PAGE_READERS, pageOf } from '../../../core/http/query';
import { listOf, object, orNull, pageShape, shape } from '../../../core/http/shape';
import { restrictionOf } from './users-of-console';

function showTeam({ id, accountId, name, members, requiredTags, require, createdAt }: Team): object {
  const required = { requiredTags: requiredTags ?? null, require: require ?? null };
  return { id, accountId, name, members, ...required, createdAt: createdAt.toISOString() };
}

/** The result of `showTeam` in the OpenAPI document. */
const TEAM = object({
  id: shape.uuid,
  accountId: shape.uuid,
  name: shape.text,
  members: listOf(shape.uuid),
  requiredTags: orNull(shape.texts),
  require: SHOWN_REQUIRE,
  createdAt: shape.time,
});

const TEAM_BODY = {
  type: 'object',
  additionalProperties: false,
  required: ['name'],
  properties: { name: TEXT, requiredTags: REQUIRED_TAGS },
  example: { name: 'research', requiredTags: ['customer'] },
} as const;

const TEAM_CHANGES = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: { name: TEXT, requiredTags: { ...REQUIRED_TAGS, type: ['array', 'null'] }, require: REQUIRE_CHANGE },
  example: { requiredTags: ['customer', 'end_user'] },
} as const;

function wantedOf<B extends { readonly requiredTags?: readonly string[] | null }>(body: B): B {
  return { ...body, requiredTags: readRequiredTags(body.requiredTags) };
}

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
        showTeam(await createTeam(gateway, params.accountId, wantedOf(body), operator.actor)),
    }),
    adminRoute('GET /admin/v1/accounts/{accountId}/teams', {
      role: 'read',
      summary: 'List the teams of an account with their members, newest first.',
      query: PAGE_READERS,
      answers: { 200: { description: 'A page of teams.', schema: pageShape(TEAM) } },
      handle: async ({ params, filters, session }) => {
        const page = pageOf(filters);
        const { items, nextCursor } = await listTeams(database, params.accountId, page, restrictionOf(session));
        return { items: items.map(showTeam), nextCursor };
      },
    }),
    adminRoute('PATCH /admin/v1/teams/{teamId}', {
      role: 'write',
      summary: 'Rename a team, or change the required tags or the demands of its keys; null removes.',
      body: TEAM_CHANGES,
      answers: SHOWN,
      errors: ['CONFLICT', 'LEDGER_UNAVAILABLE'],
      handle: async ({ body, params, operator }) =>
        showTeam(
          await updateTeam(
            gateway,
            params.teamId,
            { ...wantedOf(body), require: readRequire(body.require) },
            operator.actor,
          ),
        ),
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
