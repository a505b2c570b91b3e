import type { Route } from '../../../core/api/route';
import { fail } from '../../../core/errors';

/** The one endpoint of the protocols that is not offered; clients ask it below each base address. */
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
