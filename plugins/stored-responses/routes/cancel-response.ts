import type { Route } from '../../../core/api/route';
import type { Parts } from '../ask-vendor';
import { PROXIED, passOn } from '../pass-on';

export function cancelResponseRoute(gateway: Parts, prefix: string): Route {
  return {
    ...PROXIED,
    method: 'POST',
    path: `${prefix}/v1/responses/{id}/cancel`,
    summary: 'Have the vendor cancel a response.',
    answers: { 200: { description: 'The response.', schema: { type: 'object' } } },
    handle: passOn(gateway, 'POST', '/cancel'),
  };
}
