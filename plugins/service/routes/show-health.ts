import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { object, oneOf } from '../../../core/http/shape';

export function showHealthRoute(): Route {
  return {
    listener: 'public',
    auth: 'none',
    method: 'GET',
    path: '/healthz',
    inWorkers: true,
    isAskedOften: true,
    summary: 'Reports that the process is alive.',
    answers: { 200: { description: 'The process is alive.', schema: object({ status: oneOf('alive') }) } },
    handle: async (_visit, _request, response) => sendJson(response, 200, { status: 'alive' }),
  };
}
