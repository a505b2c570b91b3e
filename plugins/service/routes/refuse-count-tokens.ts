import type { Route } from '../../../core/api/route';
import { fail } from '../../../core/errors';

/** Rejects `count_tokens`, the only endpoint of the protocols that the gateway does not offer. Clients call it below each base address. */
export function refuseCountTokensRoute(path: `${string}/v1/messages/count_tokens`): Route {
  return {
    listener: 'public',
    auth: 'none',
    method: '*',
    anyHost: true,
    path,
    summary: 'Refuses token counting, which is not implemented.',
    answers: {},
    errors: ['ENDPOINT_NOT_IMPLEMENTED'],
    handle: async () => {
      throw fail('ENDPOINT_NOT_IMPLEMENTED', { message: 'This gateway does not implement token counting.' });
    },
  };
}
