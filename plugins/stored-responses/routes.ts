import type { Route } from '../../core/api/route';
import type { Parts } from './ask-vendor';
import { PROXIED, passOn } from './pass-on';

function cancelResponseRoute(gateway: Parts, prefix: string): Route {
  return {
    ...PROXIED,
    method: 'POST',
    path: `${prefix}/v1/responses/{id}/cancel`,
    summary: 'Have the vendor cancel a response.',
    answers: { 200: { description: 'The response.', schema: { type: 'object' } } },
    handle: passOn(gateway, 'POST', '/cancel'),
  };
}

function deleteResponseRoute(gateway: Parts, prefix: string): Route {
  return {
    ...PROXIED,
    method: 'DELETE',
    path: `${prefix}/v1/responses/{id}`,
    summary: 'Have the vendor delete a response.',
    answers: { 200: { description: 'It is deleted.', schema: { type: 'object' } } },
    handle: passOn(gateway, 'DELETE', ''),
  };
}

/** Clients use stored responses below the base address of their calls. */
const PREFIXES = ['', '/default', '/quality', '/speed', '/cost'];

/** Lists the endpoints of stored responses; docs/contract.md, section 4.6. */
export function storedResponseRoutes(gateway: Parts): readonly Route[] {
  return PREFIXES.flatMap((prefix) => [
    showResponseRoute(gateway, prefix),
    deleteResponseRoute(gateway, prefix),
    cancelResponseRoute(gateway, prefix),
    listInputItemsRoute(gateway, prefix),
  ]);
}

function listInputItemsRoute(gateway: Parts, prefix: string): Route {
  return {
    ...PROXIED,
    method: 'GET',
    path: `${prefix}/v1/responses/{id}/input_items`,
    summary: 'List the input of a response that its vendor keeps.',
    answers: { 200: { description: 'The items.', schema: { type: 'object' } } },
    handle: passOn(gateway, 'GET', '/input_items'),
  };
}

function showResponseRoute(gateway: Parts, prefix: string): Route {
  return {
    ...PROXIED,
    method: 'GET',
    path: `${prefix}/v1/responses/{id}`,
    summary: 'Show a response that its vendor keeps.',
    answers: { 200: { description: 'The response.', schema: { type: 'object' } } },
    handle: passOn(gateway, 'GET', ''),
  };
}
