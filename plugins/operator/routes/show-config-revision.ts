import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { sendJson } from '../../../core/http/http';
import { object, shape } from '../../../core/http/shape';
import { etagOf, REVISION, requireRevision } from './config-revision';

export function showConfigRevisionRoute(gateway: PluginGateway): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/config/revisions/{revision}',
    summary: 'An applied configuration with its text, by its number or its revision.',
    answers: {
      200: {
        description: 'The revision; variables stand in its text as they are written.',
        schema: object({ ...REVISION, text: shape.text }),
        headers: { ETag: 'Its number; of the newest, for `If-Match`.' },
      },
    },
    handle: async ({ params }, _request, response) => {
      const found = await requireRevision(gateway, params['revision']);
      sendJson(response, 200, found, etagOf(found.number));
    },
  };
}
