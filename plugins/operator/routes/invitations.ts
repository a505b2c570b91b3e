import { ID } from '../../../core/api/fields';
import { adminRoute } from '../../../core/api/json-routes';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { saidPublicUrl } from '../../../core/http/public-url';
import { PAGE_READERS, pageOf } from '../../../core/http/query';
import { listOf, object, orNull, pageShape, shape } from '../../../core/http/shape';
import { createInvitation, deleteInvitation, listInvitations } from '../../../core/sign-in/invitations';
import { MEMBER_ROLE } from '../../../core/sign-in/member-roles';
import { EMAIL, USER_ROLE } from './users';
import { changerOf } from './users-of-console';

const INVITATION_FIELDS = {
  id: shape.uuid,
  email: shape.text,
  role: MEMBER_ROLE,
  teamIds: listOf(shape.uuid),
  expiresAt: shape.time,
};

const INVITATION = object(INVITATION_FIELDS);

const MADE = object({
  ...INVITATION_FIELDS,
  path: shape.text,
  url: orNull({ type: 'string', description: 'Null where PUBLIC_URL is not set: then `path` of the public listener.' }),
});

const NEW_INVITATION = {
  type: 'object',
  additionalProperties: false,
  required: ['email', 'role'],
  properties: {
    email: EMAIL,
    role: USER_ROLE,
    teamIds: { type: 'array', maxItems: 100, uniqueItems: true, items: ID },
  },
  example: { email: 'grace@example.com', role: 'member' },
} as const;

export function invitationRoutes({ database }: PluginGateway): readonly Route[] {
  return [
    adminRoute('POST /admin/v1/accounts/{accountId}/invitations', {
      role: 'write',
      summary:
        'Invite a person to become a user of an account by a link that works once, for seven days; only this answer contains it.',
      body: NEW_INVITATION,
      answers: { 201: { description: 'The invitation with its link.', schema: MADE } },
      errors: ['CONFLICT'],
      handle: async ({ body, params, ...asked }) => {
        const { token, invitation } = await createInvitation(database, params.accountId, body, changerOf(asked));
        // The token is in the fragment, because browsers do not send fragments, so that no log contains the token.
        const path = `/console/invitation#token=${token}`;
        const publicUrl = saidPublicUrl();
        return { ...invitation, path, url: publicUrl === undefined ? null : publicUrl + path };
      },
    }),
    adminRoute('GET /admin/v1/accounts/{accountId}/invitations', {
      role: 'read',
      summary: 'List the invitations of an account that can still be accepted, newest first.',
      query: PAGE_READERS,
      answers: { 200: { description: 'A page of invitations.', schema: pageShape(INVITATION) } },
      handle: ({ params, filters }) => listInvitations(database, params.accountId, pageOf(filters)),
    }),
    adminRoute('DELETE /admin/v1/invitations/{invitationId}', {
      role: 'write',
      summary: 'Withdraw an invitation: its link no longer works.',
      answers: { 200: { description: 'The invitation.', schema: INVITATION } },
      handle: ({ params, ...asked }) => deleteInvitation(database, params.invitationId, changerOf(asked)),
    }),
  ];
}
