import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { giveSession } from './operator-session';

export function endOperatorSessionRoute({ operators }: PluginGateway): Route {
  return {
    listener: 'admin',
    auth: 'page',
    method: 'DELETE',
    path: '/operator/api/session',
    summary: 'Signs out.',
    answers: { 204: { description: 'It has ended.', headers: { 'Set-Cookie': 'No session any more.' } } },
    errors: ['NOT_SIGNED_IN', 'FORBIDDEN'],
    handle: async (_visit, request, response) => {
      await operators.endSession(await operators.session(request));
      giveSession(request, response, undefined);
      response.writeHead(204);
      response.end();
    },
  };
}
