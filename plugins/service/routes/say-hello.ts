import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { object, oneOf } from '../../../core/http/shape';

export function sayHelloRoute(): Route {
  return {
    listener: 'public',
    auth: 'none',
    method: 'GET',
    path: '/api/hello',
    summary: 'Answers the connectivity check of agents.',
    answers: { 200: { description: 'The service can be reached.', schema: object({ message: oneOf('hello') }) } },
    handle: async (_visit, _request, response) => sendJson(response, 200, { message: 'hello' }),
  };
}
