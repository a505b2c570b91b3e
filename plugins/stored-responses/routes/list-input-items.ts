import type { Route } from '../../../core/api/route';
import type { Parts } from '../ask-vendor';
import { PROXIED, passOn } from '../pass-on';

export function listInputItemsRoute(gateway: Parts, prefix: string): Route {
  return {
    ...PROXIED,
    method: 'GET',
    path: `${prefix}/v1/responses/{id}/input_items`,
    summary: 'List the input of a response that its vendor keeps.',
    answers: { 200: { description: 'The items.', schema: { type: 'object' } } },
    handle: passOn(gateway, 'GET', '/input_items'),
  };
}
