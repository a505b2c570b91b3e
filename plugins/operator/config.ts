import { fail } from '../../core/errors';
import type { Gateway } from '../../core/gateway';
import { jsonBody, sendJson } from '../../core/http';
import type { Route } from '../../core/plugin';
import { auditReload } from '../../core/reload-triggers';
import { listOf, object, orNull, shape } from '../../core/shape';
import { ADMIN, NOTHING } from './fields';

export function configRoutes({ liveConfiguration: live, database }: Gateway): Route[] {
  const readNothing = jsonBody<object>(NOTHING);
  return [
    {
      listener: 'admin',
      method: 'POST',
      path: '/admin/v1/config/reload',
      summary: 'Read gateway.config.yml again; a file with mistakes changes nothing.',
      body: NOTHING,
      answers: {
        200: {
          description: 'It is in force.',
          schema: object({ revision: shape.text, before: shape.text, restartNeeded: shape.texts }),
        },
      },
      errors: ['CONFIGURATION_INVALID'],
      handle: async (_visit, request, response) => {
        await readNothing(request);
        // The transaction is there first: what could not be written into the audit log is not done.
        const outcome = await database.transaction(async (transaction) => {
          const reloaded = await live.reload(ADMIN);
          await auditReload(transaction, ADMIN, reloaded);
          return reloaded;
        });
        if (outcome.outcome === 'refused')
          throw fail('CONFIGURATION_INVALID', { details: { revision: outcome.revision, problems: outcome.problems } });
        const { before, revision, restartNeeded } = outcome;
        sendJson(response, 200, { revision, before, restartNeeded });
      },
    },
    {
      listener: 'admin',
      method: 'GET',
      path: '/admin/v1/config/revision',
      summary: 'Which configuration is in force since when, and why the last reload was refused.',
      answers: {
        200: {
          description: 'The revision, and what is not in force.',
          schema: object({
            revision: shape.text,
            since: shape.time,
            restartNeeded: shape.texts,
            lastFailure: orNull(object({ at: shape.time, actor: shape.text, problems: listOf(PROBLEM) })),
          }),
        },
      },
      handle: async (_visit, _request, response) => {
        const { lastFailure } = live;
        sendJson(response, 200, {
          revision: live.current.revision,
          since: live.since.toISOString(),
          restartNeeded: live.restartNeeded,
          lastFailure: lastFailure === undefined ? null : { ...lastFailure, at: lastFailure.at.toISOString() },
        });
      },
    },
  ];
}

const PROBLEM = {
  type: 'object',
  required: ['file', 'message'],
  properties: { file: shape.text, line: shape.integer, column: shape.integer, message: shape.text },
};
