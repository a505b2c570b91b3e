import type { IncomingMessage, ServerResponse } from 'node:http';
import { answerEarly } from './lingering-close';

/**
 * Sets the headers that allow a page of another origin to read an answer. Returns true if the request was a preflight and has
 * been answered.
 */
export type Cors = (request: IncomingMessage, response: ServerResponse) => boolean;

/** Headers of the gateway's answers that pages may read, in addition to those that browsers always allow. */
const EXPOSED = [
  'X-SVC-Source',
  'X-SVC-Request-Id',
  'X-SVC-Repeats',
  'X-Routing-Provider',
  'X-Routing-Attempts',
  'X-Routing-Fallback',
  'X-Routing-Translated',
  'X-Tollgate-Routing',
  'X-AI-Cost',
  'X-AI-Tokens-Input',
  'X-AI-Tokens-Output',
  'X-AI-Tokens-Total',
  'request-id',
  'x-request-id',
  'retry-after',
  'x-should-retry',
].join(', ');

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';

/** How long browsers may reuse the answer to a preflight. Chromium uses at most two hours. */
const MAX_AGE_SECONDS = 7_200;

const HEADER_NAMES = /^[\w!#$%&'*+.^`|~-]+(?:, ?[\w!#$%&'*+.^`|~-]+)*$/;

/**
 * Returns the function that applies CORS. `origins` are exact origins, or `*` for every page. Answers never allow credentials. Browsers
 * therefore send no cookie with a request from another origin, and the page itself sends the API key in a header.
 */
export function allowOrigins(origins: readonly string[]): Cors {
  const allowed = new Set(origins);
  const isForAll = allowed.has('*');
  return (request, response) => {
    if (!isForAll) response.setHeader('vary', 'Origin');
    const { origin } = request.headers;
    if (origin === undefined || !(isForAll || allowed.has(origin))) return false;
    response.setHeader('access-control-allow-origin', isForAll ? '*' : origin);
    if (!isPreflight(request)) {
      response.setHeader('access-control-expose-headers', EXPOSED);
      return false;
    }
    const asked = request.headers['access-control-request-headers'] ?? '';
    if (HEADER_NAMES.test(asked)) response.setHeader('access-control-allow-headers', asked);
    response.setHeader('access-control-allow-methods', METHODS);
    response.setHeader('access-control-max-age', MAX_AGE_SECONDS);
    response.writeHead(204);
    answerEarly(request, response, '');
    return true;
  };
}

function isPreflight({ method, headers }: IncomingMessage): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
}
