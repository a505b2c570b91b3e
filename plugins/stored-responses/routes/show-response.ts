import type { Route } from '../../../core/api/route';
import type { Parts } from '../ask-vendor';
import { PROXIED, passOn } from '../pass-on';

export function showResponseRoute(gateway: Parts, prefix: string): Route {
  return {
    ...PROXIED,
    method: 'GET',
    path: `${prefix}/v1/responses/{id}`,
    summary: 'Show a response that its vendor keeps.',
    answers: { 200: { description: 'The response.', schema: { type: 'object' } } },
    handle: passOn(gateway, 'GET', ''),
  };
}
