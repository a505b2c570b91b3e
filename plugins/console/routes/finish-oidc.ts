import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Route } from '../../../core/api/route';
import { clientPlace } from '../../../core/http/client-place';
import { publicUrlOf } from '../../../core/http/public-url';
import { beginAtProvider } from '../../../core/sign-in/attempts';
import { recogniseIdentity } from '../../../core/sign-in/identities';
import { beginSession } from '../../../core/sign-in/sessions';
import {
  AWAY_AT_MOST_MS,
  forgetAway,
  type OidcParts,
  type Reason,
  readAway,
  reasonOf,
  redirect,
  requireProvider,
  signInAgain,
} from './oidc-journey';
import { giveSession } from './sign-in';
import { CALLBACK } from './start-oidc';

export function finishOidcRoute(parts: OidcParts): Route {
  return {
    listener: 'public',
    auth: 'page',
    method: 'GET',
    path: CALLBACK,
    summary: 'Where the identity provider sends the browser back to.',
    answers: {
      303: {
        description: 'The person is signed in, or the sign-in says why not.',
        headers: { Location: 'A path of the page.', 'Set-Cookie': 'The session, where there is one.' },
      },
    },
    errors: ['NOT_FOUND'],
    handle: async (_visit, request, response) => {
      requireProvider(parts);
      forgetAway(response);
      const next = await finish(parts, request, response).catch((error: unknown): { reason: Reason } => {
        return { reason: reasonOf(error, parts.log, 'a sign-in with the identity provider failed') };
      });
      if (typeof next === 'string') redirect(response, 303, next);
      else signInAgain(response, next.reason);
    },
  };
}

/** @returns the path where the browser continues, or the reason for the refusal */
async function finish(
  parts: OidcParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<string | { readonly reason: Reason }> {
  const { database, log, times, proxies } = parts;
  const callback = new URL(publicUrlOf(request) + CALLBACK);
  callback.search = /\?.*/.exec(request.url ?? '')?.[0] ?? '';
  const away = readAway(request);
  const isOurs = away !== undefined && callback.searchParams.get('state') === away.state;
  if (!isOurs || Date.now() - away.sinceMs > AWAY_AT_MOST_MS) return { reason: 'expired' };
  if (callback.searchParams.has('error')) return { reason: 'denied' };
  const attempt = await beginAtProvider(database, clientPlace(request, proxies));
  const { identity, verifiedEmail } = await requireProvider(parts).finish(callback, away);
  const user = await recogniseIdentity(database, identity, verifiedEmail);
  if ('refused' in user) {
    const { refused: reason, userId } = user;
    if (reason === 'bound')
      log.warn(
        { userId, ...identity },
        'a sign-in was rejected because the user of its address is bound to another identity',
      );
    return { reason };
  }
  await attempt.succeeded();
  giveSession(response, await beginSession(database, user, 'oidc', times));
  return away.returnTo;
}
