import { NOTHING } from '../../../core/api/fields';
import type { Route } from '../../../core/api/route';
import { fail } from '../../../core/errors';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { jsonBody, sendJson } from '../../../core/http/http';
import { object, shape } from '../../../core/http/shape';

export function reloadConfigRoute({ liveConfiguration: live }: PluginGateway): Route {
  const readNothing = jsonBody<object>(NOTHING);
  return {
    listener: 'admin',
    role: 'write',
    method: 'POST',
    path: '/admin/v1/config/reload',
    summary: 'Reload gateway.config.yml or the newest applied revision; an invalid one changes nothing.',
    body: NOTHING,
    answers: {
      200: {
        description: 'It is in force.',
        schema: object({ revision: shape.text, before: shape.text, restartNeeded: shape.texts }),
      },
    },
    errors: ['CONFIGURATION_INVALID'],
    handle: async ({ operator }, request, response) => {
      await readNothing(request);
      const outcome = await live.reload(operator.actor);
      if (outcome.outcome === 'refused')
        throw fail('CONFIGURATION_INVALID', { details: { revision: outcome.revision, problems: outcome.problems } });
      const { before, revision, restartNeeded } = outcome;
      sendJson(response, 200, { revision, before, restartNeeded });
    },
  };
}
