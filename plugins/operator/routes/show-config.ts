import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { sendJson } from '../../../core/http/http';
import { listOf, object, orNull, shape } from '../../../core/http/shape';
import { PROBLEM, SOURCE } from './config-revision';

export function showConfigRoute({ liveConfiguration: live, configurationSource: source }: PluginGateway): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/config/revision',
    summary: 'The active configuration, since when it is active, and why the last reload was rejected.',
    answers: {
      200: {
        description: 'The revision, and which changes are not active.',
        schema: object({
          source: SOURCE,
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
  };
}
