import type { Route } from '../../../core/api/route';
import { clientPlace } from '../../../core/http/client-place';
import { publicUrlOf } from '../../../core/http/public-url';
import { readQuery } from '../../../core/http/query';
import { beginAtProvider } from '../../../core/sign-in/attempts';
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
export const CALLBACK = '/console/api/oidc/callback';

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
      303: {
        description: 'The provider cannot be reached, or is asked too often.',
        headers: { Location: 'The sign-in, which says so.' },
      },
    },
    errors: ['NOT_FOUND'],
    handle: async ({ query }, request, response) => {
      const { returnTo = '/console' } = readQuery(query, READERS);
      const provider = requireProvider(parts);
      try {
        await beginAtProvider(parts.database, clientPlace(request, parts.proxies));
        const { url, journey } = await provider.begin(publicUrlOf(request) + CALLBACK);
        rememberAway(response, journey, returnTo);
        redirect(response, 302, url.href);
      } catch (error) {
        signInAgain(response, reasonOf(error, parts.log, 'the identity provider cannot be reached'));
      }
    },
  };
}
