import type { Handler, Route } from '../../../core/api/route';
import { shape } from '../../../core/http/shape';

/** The page reads its own path: `handle` answers to all of them with the same files. */
export function showOperatorPageRoute(path: '/operator' | '/operator/{path...}', handle: Handler): Route {
  return {
    listener: 'admin',
    auth: 'page',
    method: 'GET',
    path,
    summary: "The operator's page.",
    answers: {
      200: { description: 'The page, or a file of its build.', schema: shape.text, mediaType: 'text/html' },
      304: { description: 'The file that `If-None-Match` names.' },
      503: { description: 'The page was not built.', schema: shape.text, mediaType: 'text/plain' },
    },
    handle,
  };
}
