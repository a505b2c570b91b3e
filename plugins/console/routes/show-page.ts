import type { Handler, Route } from '../../../core/api/route';
import { shape } from '../../../core/http/shape';

/** Serves the console's page. All of its paths get the same files, because the page itself reads the path. */
export function showPageRoute(path: '/console' | '/console/{path...}', handle: Handler): Route {
  return {
    listener: 'public',
    auth: 'page',
    method: 'GET',
    path,
    summary: 'The console.',
    answers: {
      200: { description: 'The page, or a file of its build.', schema: shape.text, mediaType: 'text/html' },
      304: { description: 'The file that `If-None-Match` names.' },
      503: { description: 'The page was not built.', schema: shape.text, mediaType: 'text/plain' },
    },
    handle,
  };
}
