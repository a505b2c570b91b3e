import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { sessionRoute } from '../../../core/api/json-routes';
import { fail } from '../../../core/base/errors';
import { object } from '../../../core/http/shape';
import { MANAGERS, type MemberRole } from '../../../core/sign-in/member-roles';
import type { Session } from '../../../core/sign-in/sessions';
import { serveRoutes } from '../../support/serve';

const BODY = '{"name":"x"}';

describe('a change that a user sends to the console so slowly that the user changes meanwhile', () => {
  for (const [what, after, status, code] of [
    ['is refused if the user was removed', undefined, 401, 'NOT_SIGNED_IN'],
    ['is refused if the user has another role', 'viewer', 403, 'FORBIDDEN'],
    ['is made if nothing has changed', 'owner', 200, undefined],
  ] as const)
    it(what, async () => {
      let role: MemberRole | undefined = 'owner';
      let isMade = false;
      let isAsked = (): void => undefined;
      const asked = new Promise<void>((resolve) => {
        isAsked = resolve;
      });
      const route = sessionRoute('PATCH /console/api/things/{thingId}', {
        roles: MANAGERS,
        summary: 'Changes a thing.',
        body: { type: 'object', additionalProperties: false, properties: { name: { type: 'string' } } },
        answers: { 200: { description: 'Done.', schema: object({}) } },
        handle: async () => {
          isMade = true;
          return {};
        },
      });
      const signedIn = async () => {
        isAsked();
        if (role === undefined) throw fail('NOT_SIGNED_IN');
        return { user: { id: 'u', accountId: 'a', role } } as unknown as Session;
      };
      const server = await serveRoutes([route], { signedIn });
      try {
        const headers = {
          'content-type': 'application/json',
          'content-length': BODY.length,
          'sec-fetch-site': 'same-origin',
        };
        const sent = request(`${server.url}/console/api/things/1`, { method: 'PATCH', headers });
        sent.write(BODY.slice(0, 5));
        await asked;
        role = after;
        sent.end(BODY.slice(5));
        const [response] = await once(sent, 'response');
        const answer = JSON.parse((await response.toArray()).join(''));
        assert.deepEqual([response.statusCode, answer.error?.code], [status, code]);
        assert.equal(isMade, status === 200);
      } finally {
        await server.close();
      }
    });
});
