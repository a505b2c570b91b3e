import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { Stores } from '../../../core/accounts/accounts';
import { pageRoute } from '../../../core/api/json-routes';
import type { Route } from '../../../core/api/route';
import { fail, GatewayError } from '../../../core/base/errors';
import { cookieOf, setCookie } from '../../../core/http/cookies';
import { clientPlace, type Proxies } from '../../../core/http/proxies';
import { publicUrlOf } from '../../../core/http/public-url';
import { type Reader, reader } from '../../../core/http/query';
import { beginAtProvider } from '../../../core/sign-in/attempts';
import { type IdentityRefusal, recogniseIdentity } from '../../../core/sign-in/identities';
import { confirmMember, type Membership } from '../../../core/sign-in/membership';
import { beginSession, type SessionTimes } from '../../../core/sign-in/sessions';
import type { IdentityProvider, Journey } from '../oidc';
import { giveSession } from './sign-in';

/** Redirects the browser to the identity provider and handles the browser's return. A separate cookie keeps the data for that return. */

const COOKIE = 'tollgate-oidc';
const MAX_AWAY_MS = 600_000;

/** Why a sign-in failed, as the gateway reports it to the console's page. */
type Reason = IdentityRefusal | 'denied' | 'expired' | 'slowed' | 'failed';

interface Away extends Journey {
  readonly returnTo: string;
  readonly sinceMs: number;
}

interface OidcParts extends Stores {
  readonly log: Logger;
  readonly times: SessionTimes;
  readonly proxies: Proxies;
  readonly provider: IdentityProvider | undefined;
  readonly membership: Membership | undefined;
}

/** Returns the identity provider. @throws NOT_FOUND if none is configured */
function requireProvider({ provider }: OidcParts): IdentityProvider {
  if (provider === undefined)
    throw fail('NOT_FOUND', { message: 'No identity provider is configured. Sign in with a password or a link.' });
  return provider;
}

/** Reads a path of the console. Rejects every text that a browser could read as another host's address. */
const readReturnTo: Reader<string> = reader({ type: 'string' }, (text) => {
  if (/^\/console(\/[\w\-./]*)?(\?[\w\-.=&%:+]*)?$/.test(text) && !/\/\/|\.\./.test(text)) return text;
  throw new RangeError('expected a path under /console');
});

function rememberAway(response: ServerResponse, journey: Journey, returnTo: string): void {
  const away: Away = { ...journey, returnTo, sinceMs: Date.now() };
  const value = Buffer.from(JSON.stringify(away)).toString('base64url');
  // The identity provider's site redirects the browser back here. On such a request, browsers would not send a `SameSite=Strict` cookie.
  setCookie(response, COOKIE, value, { sameSite: 'Lax', maxAgeSeconds: MAX_AWAY_MS / 1_000 });
}

function forgetAway(response: ServerResponse): void {
  setCookie(response, COOKIE, '', { sameSite: 'Lax' });
}

/** Reads the sign-in cookie and checks its content, because the browser could have changed it. Returns undefined if it is absent or invalid. */
function readAway(request: IncomingMessage): Away | undefined {
  try {
    const read = JSON.parse(Buffer.from(cookieOf(request, COOKIE) ?? '', 'base64url').toString()) as Partial<Away>;
    const { state, nonce, verifier, returnTo, sinceMs } = read;
    if (typeof state !== 'string' || typeof nonce !== 'string' || typeof verifier !== 'string') return undefined;
    if (typeof returnTo !== 'string' || typeof sinceMs !== 'number') return undefined;
    return { state, nonce, verifier, returnTo: readReturnTo(returnTo), sinceMs };
  } catch {
    return undefined;
  }
}

function signInAgain(response: ServerResponse, reason: Reason): void {
  redirect(response, 303, `/console/sign-in#error=${reason}`);
}

export function redirect(response: ServerResponse, status: 302 | 303, location: string): void {
  response.writeHead(status, { location });
  response.end();
}

/** Returns the reason that the page shows for an error. Logs every error except a sign-in that was slowed (`SIGN_IN_SLOWED`). */
function reasonOf(error: unknown, log: Logger, message: string): Reason {
  if (error instanceof GatewayError && error.code === 'SIGN_IN_SLOWED') return 'slowed';
  log.warn({ reason: textOf(error) }, message);
  return 'failed';
}

/** Describes an error with its cause, where libraries put the details. No cause contains a token. */
function textOf(error: unknown): string {
  const { message = String(error), code, cause } = error as Error & { code?: string };
  const inner = cause instanceof Error ? `: ${cause.message}` : '';
  return `${code === undefined ? '' : `${code} `}${message}${inner}`;
}

const CALLBACK = '/console/api/oidc/callback';

export function startOidcRoute(parts: OidcParts): Route {
  return pageRoute('GET /console/api/oidc/start', {
    summary: 'Sends the browser to the identity provider.',
    query: { returnTo: readReturnTo },
    answers: {
      302: { description: 'The browser goes to the provider.', headers: { Location: 'Where it signs in.' } },
      303: {
        description: 'The provider cannot be reached, or is asked too often.',
        headers: { Location: 'The sign-in, which says so.' },
      },
    },
    errors: ['NOT_FOUND'],
    handle: async ({ filters: { returnTo = '/console' } }, request, response) => {
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
  });
}

export function finishOidcRoute(parts: OidcParts): Route {
  return pageRoute(`GET ${CALLBACK}`, {
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
  });
}

/** Finishes a sign-in after the provider has redirected the browser back. @returns the path where the browser continues, or why it was refused */
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
  if (!isOurs || Date.now() - away.sinceMs > MAX_AWAY_MS) return { reason: 'expired' };
  if (callback.searchParams.has('error')) return { reason: 'denied' };
  const attempt = await beginAtProvider(database, clientPlace(request, proxies));
  const { identity, verifiedEmail, groups } = await requireProvider(parts).finish(callback, away);
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
  if (parts.membership !== undefined) await confirmMember(parts, user, groups, parts.membership);
  await attempt.succeeded();
  giveSession(response, await beginSession(database, user, 'oidc', times));
  return away.returnTo;
}
