import { fail } from '../../core/errors';
import type { Gateway } from '../../core/gateway';
import { jsonBody, sendJson } from '../../core/http';
import type { Route } from '../../core/plugin';
import { listOf, object, oneOf, orNull, shape } from '../../core/shape';
import { ADMIN, NOTHING } from './fields';
import { PROBLEM } from './revisions';

export function configRoutes({ liveConfiguration: live, configurationSource: source }: Gateway): Route[] {
  const readNothing = jsonBody<object>(NOTHING);
  return [
    {
      listener: 'admin',
      method: 'POST',
      path: '/admin/v1/config/reload',
      summary: 'Read gateway.config.yml, or the newest applied revision, again; one with mistakes changes nothing.',
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
        const outcome = await live.reload(ADMIN);
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
            source: oneOf('file', 'database'),
            number: orNull(shape.integer),
            revision: shape.text,
            since: shape.time,
            restartNeeded: shape.texts,
            lastFailure: orNull(
              object({ at: shape.time, actor: shape.text, number: orNull(shape.integer), problems: listOf(PROBLEM) }),
            ),
          }),
        },
      },
      handle: async (_visit, _request, response) => {
        const { lastFailure } = live;
        sendJson(response, 200, {
          source: source.is,
          number: live.current.number ?? null,
          revision: live.current.revision,
          since: live.since,
          restartNeeded: live.restartNeeded,
          lastFailure: lastFailure === undefined ? null : { ...lastFailure, number: lastFailure.number ?? null },
        });
      },
    },
  ];
}
