import type { Knex } from 'knex';
import { NOTHING } from '../../../core/api/fields';
import type { Route } from '../../../core/api/route';
import { jsonBody, sendJson } from '../../../core/http/http';
import { saidPublicUrl } from '../../../core/http/public-url';
import { object, orNull, shape } from '../../../core/http/shape';
import { makeSignInLink } from '../../../core/sign-in/links';

const LINK_LIFETIME_MS = 3_600_000;

const LINK = object({
  url: orNull({ type: 'string', description: 'Null where PUBLIC_URL is not set: then `path` of the public listener.' }),
  path: shape.text,
  expiresAt: shape.time,
});

export function makeSignInLinkRoute(database: Knex): Route {
  const readNothing = jsonBody<object>(NOTHING);
  return {
    listener: 'admin',
    role: 'write',
    method: 'POST',
    path: '/admin/v1/users/{userId}/sign-in-link',
    summary: 'Create a link that signs a user in to the console once, within an hour; only this answer contains it.',
    body: NOTHING,
    answers: { 201: { description: 'The link.', schema: LINK } },
    errors: ['CONFLICT'],
    handle: async ({ params, operator }, request, response) => {
      await readNothing(request);
      const { token, expiresAt } = await makeSignInLink(
        database,
        params['userId'] ?? '',
        LINK_LIFETIME_MS,
        operator.actor,
      );
      // The token is in the fragment, because browsers do not send it and so no log contains it.
      const path = `/console/sign-in#token=${token}`;
      const publicUrl = saidPublicUrl();
      const url = publicUrl === undefined ? null : publicUrl + path;
      sendJson(response, 201, { url, path, expiresAt: expiresAt.toISOString() }, { 'cache-control': 'no-store' });
    },
  };
}
