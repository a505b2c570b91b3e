import type { Route } from '../../../core/api/route';
import type { Parts } from '../ask-vendor';
import { PROXIED, passOn } from '../pass-on';

export function deleteResponseRoute(gateway: Parts, prefix: string): Route {
  return {
    ...PROXIED,
    method: 'DELETE',
    path: `${prefix}/v1/responses/{id}`,
    summary: 'Have the vendor delete a response.',
    answers: { 200: { description: 'It is deleted.', schema: { type: 'object' } } },
    handle: passOn(gateway, 'DELETE', ''),
  };
}
