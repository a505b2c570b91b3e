import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { pageRoute } from '../../core/console-route';
import { cookieOf, setCookie } from '../../core/cookies';
import { fail, GatewayError } from '../../core/errors';
import type { Route } from '../../core/plugin';
import { publicUrlOf } from '../../core/public-url';
import { type Reader, reader, readQuery } from '../../core/query';
import { beginSession, type SessionTimes } from '../../core/sessions';
import { findUserByEmail } from '../../core/users';
import type { IdentityProvider, Journey } from './oidc';
import { giveSession } from './sign-in';

const COOKIE = 'tollgate-oidc';
const AWAY_AT_MOST_MS = 600_000;
const CALLBACK = '/console/api/oidc/callback';

/** Why nobody is signed in, as the page is told. */
type Reason = 'denied' | 'unknown' | 'unverified' | 'expired' | 'failed';

interface Away extends Journey {
  readonly returnTo: string;
  readonly sinceMs: number;
}

/** A place of our own page; nothing that a browser could read as another host's. */
const readReturnTo: Reader<string> = reader({ type: 'string' }, (text) => {
  if (/^\/console(\/[\w\-./]*)?(\?[\w\-.=&%:+]*)?$/.test(text) && !/\/\/|\.\./.test(text)) return text;
  throw new RangeError('expected a path under /console');
});

export interface OidcParts {
  readonly database: Knex;
  readonly log: Logger;
  readonly times: SessionTimes;
  readonly provider: IdentityProvider | undefined;
}

/** The browser goes to the provider and comes back; what it has to remember meanwhile is in a cookie of its own. */
export function oidcRoutes({ database, log, times, provider }: OidcParts): Route[] {
  const configured = () => {
    if (provider === undefined) throw fail('NOT_FOUND', { message: 'No identity provider is configured here.' });
    return provider;
  };

  const start = async (request: IncomingMessage, response: ServerResponse, returnTo: string) => {
    const { url, journey } = await configured().begin(publicUrlOf(request) + CALLBACK);
    const away: Away = { ...journey, returnTo, sinceMs: Date.now() };
    const value = Buffer.from(JSON.stringify(away)).toString('base64url');
    // The way back begins at another site: a strict cookie would not come along.
    setCookie(response, COOKIE, value, { sameSite: 'Lax', maxAgeSeconds: AWAY_AT_MOST_MS / 1_000 });
    redirect(response, 302, url.href);
  };

  /** @returns where to go on, or why not */
  const finish = async (request: IncomingMessage, response: ServerResponse): Promise<string | { reason: Reason }> => {
    const callback = new URL(publicUrlOf(request) + request.url);
    const away = readAway(request);
    const isOurs = away !== undefined && callback.searchParams.get('state') === away.state;
    if (!isOurs || Date.now() - away.sinceMs > AWAY_AT_MOST_MS) return { reason: 'expired' };
    if (callback.searchParams.has('error')) return { reason: 'denied' };
    const { email, isVerified } = await configured().finish(callback, away);
    if (email === undefined || !isVerified) return { reason: 'unverified' };
    const user = await findUserByEmail(database, email);
    if (user?.status !== 'active') return { reason: 'unknown' };
    giveSession(response, await beginSession(database, user, 'oidc', times));
    return away.returnTo;
  };

  return [
    pageRoute('GET', '/oidc/start', async ({ query }, request, response) => {
      const { returnTo = '/console' } = readQuery(query, { returnTo: readReturnTo });
      await start(request, response, returnTo).catch((error: unknown) => {
        if (error instanceof GatewayError) throw error;
        log.warn({ reason: reasonOf(error) }, 'the identity provider cannot be asked');
        signInAgain(response, 'failed');
      });
    }),
    pageRoute('GET', '/oidc/callback', async (_visit, request, response) => {
      configured();
      setCookie(response, COOKIE, '', { sameSite: 'Lax' });
      const next = await finish(request, response).catch((error: unknown): { reason: Reason } => {
        log.warn({ reason: reasonOf(error) }, 'signing in with the identity provider failed');
        return { reason: 'failed' };
      });
      if (typeof next === 'string') redirect(response, 303, next);
      else signInAgain(response, next.reason);
    }),
  ];
}

function signInAgain(response: ServerResponse, reason: Reason): void {
  redirect(response, 303, `/console/sign-in#error=${reason}`);
}

function redirect(response: ServerResponse, status: 302 | 303, location: string): void {
  response.writeHead(status, { location });
  response.end();
}

/** The cookie is the browser's own: what stands in it is checked before it is believed. */
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

/** Causes are where libraries say what happened; none of them holds a token. */
function reasonOf(error: unknown): string {
  const { message = String(error), code, cause } = error as Error & { code?: string };
  const inner = cause instanceof Error ? `: ${cause.message}` : '';
  return `${code === undefined ? '' : `${code} `}${message}${inner}`;
}
