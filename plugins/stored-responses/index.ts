import type { KeyHandler, Method, Route } from '../../core/api/route';
import { invalidParam } from '../../core/base/errors';
import { PATH_PREFIXES } from '../../core/catalog/protocols';
import { definePlugin } from '../../core/gateway/plugin';
import { askVendor, type VendorQueryContext } from './ask-vendor';

/** Access to responses that a vendor keeps (Responses protocol); docs/contract.md, section 4.6. */
export default definePlugin({
  contract: 'plugin/1',
  name: 'stored-responses',
  summary: 'Shows, cancels and deletes the responses that a vendor keeps, for the account that made them.',
  schema: { type: 'object', additionalProperties: false, properties: {} },
  routes: (_settings, gateway) => storedResponseRoutes(gateway),
});

/** The endpoints of a stored response: method, path after its id, summary, and description of the answer. */
const ENDPOINTS: readonly (readonly [Method, string, string, string])[] = [
  ['GET', '', 'Show a response that its vendor keeps.', 'The response.'],
  ['DELETE', '', 'Have the vendor delete a response.', 'It is deleted.'],
  ['POST', '/cancel', 'Have the vendor cancel a response.', 'The response.'],
  ['GET', '/input_items', 'List the input of a response that its vendor keeps.', 'The items.'],
];

/** Lists the endpoints of stored responses; docs/contract.md, section 4.6. */
function storedResponseRoutes(gateway: VendorQueryContext): readonly Route[] {
  return PATH_PREFIXES.flatMap((prefix) =>
    ENDPOINTS.map(([method, after, summary, description]) => ({
      listener: 'public',
      auth: 'key',
      method,
      path: `${prefix}/v1/responses/{id}${after}`,
      summary,
      answers: { 200: { description, schema: { type: 'object' } } },
      errors: [
        'KEPT_OBJECT_NOT_FOUND',
        'NO_CANDIDATE_ALLOWED',
        'UPSTREAM_RATE_LIMITED',
        'ALL_PROVIDERS_FAILED',
        'DATABASE_UNAVAILABLE',
        'UPSTREAM_TIMEOUT',
      ],
      handle: passOn(gateway, method, after),
    })),
  );
}

/** Returns the handler that forwards a request to the vendor that keeps the response. `after`: the part of the vendor's path behind the response's id. */
function passOn(gateway: VendorQueryContext, method: Method, after: string): KeyHandler {
  return async ({ key, params, query }, request, response) => {
    if (asksForStream(query)) throw invalidParam('stream', NO_STREAM);
    const search = query.size === 0 ? '' : `?${query}`;
    await askVendor(gateway, { key, id: params['id'] ?? '', method, after: after + search }, request, response);
  };
}

/** Returns whether the query could request a stream at any vendor. Vendors differ in how they read repeated members, letter case, and words for true. */
function asksForStream(query: URLSearchParams): boolean {
  return [...query].some(([name, value]) => /^\W*stream\W*$/i.test(name) && value !== 'false');
}

const NO_STREAM = 'this gateway does not stream stored responses again';
