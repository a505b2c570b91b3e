import type { Route } from '../../../core/api/route';
import { GatewayError } from '../../../core/errors';
import { publicUrlOf } from '../../../core/http/public-url';
import { readQuery } from '../../../core/http/query';
import {
  type OidcParts,
  readReturnTo,
  reasonOf,
  redirect,
  rememberAway,
  requireProvider,
  signInAgain,
} from './oidc-journey';

const READERS = { returnTo: readReturnTo };
const CALLBACK = '/console/api/oidc/callback';

export function startOidcRoute(parts: OidcParts): Route {
  return {
    listener: 'public',
    auth: 'page',
    method: 'GET',
    path: '/console/api/oidc/start',
    summary: 'Sends the browser to the identity provider.',
    query: READERS,
    answers: {
      302: { description: 'The browser goes to the provider.', headers: { Location: 'Where it signs in.' } },
      303: { description: 'The provider cannot be reached.', headers: { Location: 'The sign-in, which says so.' } },
    },
    errors: ['NOT_FOUND'],
    handle: async ({ query }, request, response) => {
      const { returnTo = '/console' } = readQuery(query, READERS);
      try {
        const { url, journey } = await requireProvider(parts).begin(publicUrlOf(request) + CALLBACK);
        rememberAway(response, journey, returnTo);
        redirect(response, 302, url.href);
      } catch (error) {
        if (error instanceof GatewayError) throw error;
        parts.log.warn({ reason: reasonOf(error) }, 'the identity provider cannot be reached');
        signInAgain(response, 'failed');
      }
    },
  };
}
