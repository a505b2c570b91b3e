import type { Route } from '../../../core/api/route';
import { listConfigurationNodes } from '../../../core/configuration/nodes';
import { newestRevision } from '../../../core/configuration/revisions';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { sendJson } from '../../../core/http/http';
import { listOf, object, orNull, shape } from '../../../core/http/shape';
import { PROBLEM, SOURCE } from './config-revision';

export function showConfigStatusRoute({ database, configurationSource: source }: PluginGateway): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/config/status',
    summary: 'The active configuration of each node, and why a node rejected one.',
    answers: {
      200: {
        description: 'The newest applied revision (null if the configuration comes from files) and every node.',
        schema: object({
          source: SOURCE,
          newest: orNull(object({ number: shape.integer, revision: shape.text })),
          nodes: listOf(NODE),
        }),
      },
    },
    handle: async (_visit, _request, response) => {
      const newest = source.is === 'file' ? undefined : await newestRevision(database);
      sendJson(response, 200, {
        source: source.is,
        newest: newest === undefined ? null : { number: newest.number, revision: newest.revision },
        nodes: await listConfigurationNodes(database),
      });
    },
  };
}

const NODE = object({
  node: shape.uuid,
  name: shape.text,
  startedAt: shape.time,
  seenAt: shape.time,
  source: SOURCE,
  number: orNull(shape.integer),
  revision: shape.text,
  since: shape.time,
  restartNeeded: shape.texts,
  failure: orNull(object({ at: shape.time, number: orNull(shape.integer), problems: listOf(PROBLEM) })),
});
