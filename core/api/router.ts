import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { ApiKeys, CallKey } from '../accounts/identify';
import { fail, type GatewayError } from '../base/errors';
import { log as standardLog } from '../base/log';
import { safeErrorFields } from '../base/safe-error';
import { countFor, newRequestId, sendError, setRequestId, whenClosed } from '../http/http';
import { pathOf } from '../http/request-head';
import type { Operators } from '../operators/operators';
import { USUAL_ROLE } from '../operators/roles';
import { beginConsoleAnswer, refuseOtherSites } from '../sign-in/console-requests';
import { ownOnly, requireRole } from '../sign-in/member-roles';
import type { Session } from '../sign-in/sessions';
import { type RequestFacts, requestEnded } from './request-ended';
import type { Handler, Route, UpgradeHandler, Visit } from './route';
import { RouteTable } from './route-table';
import { toGatewayError } from './to-gateway-error';

export interface ServeOptions {
  /** Returns the valid API key of a request, as the function that `confirmedKey(keys)` returns does. Required for routes with `auth: 'key'`. */
  readonly identify?: (request: IncomingMessage) => Promise<CallKey>;
  /** Counts a request of the key as running until the caller calls the returned function. @throws CONCURRENCY_LIMIT */
  readonly enter?: (key: CallKey) => () => void;
  /** Returns the session of the signed-in user, as the function that `signedIn(database)` returns does. Required for routes with `auth: 'session'`. */
  readonly signedIn?: (request: IncomingMessage) => Promise<Session>;
  /** Returns the operator of a request if the operator's role suffices, as `Operators.admit` does. Required for routes of the admin listener. */
  readonly admit?: Operators['admit'];
  readonly log?: Logger;
}

/** The endpoints of one listener. */
export interface Router {
  /** Returns the methods of a path, with HEAD if there is GET; empty if no route has the path. */
  methodsOf(path: string): readonly string[];
  /**
   * Answers a request: finds its route, authenticates, runs the handler, and renders errors through the error catalog. Resolves when the
   * handler has finished; never rejects.
   * @returns false if no route has this path; the response is then untouched
   */
  serve(request: IncomingMessage, response: ServerResponse, options: ServeOptions): Promise<boolean>;
  /** Returns the upgrade handler of a path and the path's parameters; undefined if there is none. */
  upgradeOf(path: string): { readonly take: UpgradeHandler; readonly params: Visit['params'] } | undefined;
}

/** Builds a router. @throws Error if two routes match the same requests, or if routes of both listeners are mixed */
export function compileRoutes(routes: readonly Route[]): Router {
  const listeners = new Set(routes.map((route) => route.listener));
  if (listeners.size > 1)
    throw new Error('routes of the public listener and of the admin listener cannot share a router');
  const table = new RouteTable<Route>();
  for (const route of routes) table.add(route.method, route.path, route);

  return {
    upgradeOf: (path) => {
      const found = table.find('GET', path);
      if (found === undefined || 'allow' in found) return undefined;
      const { route, params } = found;
      const take = route.listener === 'public' && route.auth === 'none' ? route.upgrade : undefined;
      return take === undefined ? undefined : { take, params };
    },
    methodsOf: (path) => table.methodsOf(path),
    serve: async (request, response, options) => {
      const found = table.find(request.method ?? 'GET', pathOf(request));
      if (found === undefined) return false;
      const visit = toVisit(request, 'params' in found ? found.params : {});
      const facts = requestFacts(visit, 'route' in found ? found.route : undefined);
      const serveRoute: Handler = async (visited) => {
        if ('allow' in found) {
          // Authenticates before it returns 405, because only operators may learn which paths the admin listener has.
          await options.admit?.(request, 'metrics');
          throw methodNotAllowed(found.allow);
        }
        await answer(found.route, visited, facts, request, response, options);
      };
      await serveVisit(visit, serveRoute, request, response, { facts, log: options.log });
      return true;
    },
  };
}

export function toVisit(request: IncomingMessage, params: Visit['params']): Omit<Visit, 'onEnd'> {
  const [path = '/', ...query] = (request.url ?? '/').split('?');
  return { id: newRequestId(), path, query: new URLSearchParams(query.join('?')), params };
}

export function requestFacts({ id }: Pick<Visit, 'id'>, route: RequestFacts['route']): RequestFacts {
  return { id, startedMs: performance.now(), route };
}

/** Runs a handler, and renders errors through the error catalog. Never rejects. */
export async function serveVisit(
  visit: Omit<Visit, 'onEnd'>,
  handle: Handler,
  request: IncomingMessage,
  response: ServerResponse,
  { facts, log = standardLog }: { readonly facts: RequestFacts; readonly log?: Logger | undefined },
): Promise<void> {
  setRequestId(response, visit.id);
  const endings: (() => void)[] = [];
  try {
    await handle({ ...visit, onEnd: (work) => endings.push(work) }, request, response);
  } catch (error) {
    facts.errorCode = render(error, visit.id, request, response, log);
  } finally {
    for (const work of endings) work();
    requestEnded(facts, request, response);
  }
}

/** Returns a function that confirms a request's key in the ledger, because without a reservation nothing else detects a revoked key. */
export function confirmedKey(keys: Pick<ApiKeys, 'identify' | 'admitRequest'>) {
  return async (request: IncomingMessage): Promise<CallKey> => keys.admitRequest(await keys.identify(request));
}

async function answer(
  route: Route,
  visit: Visit,
  facts: RequestFacts,
  request: IncomingMessage,
  response: ServerResponse,
  { identify, enter, signedIn, admit }: ServeOptions,
): Promise<void> {
  if (route.listener === 'admin' && route.auth === undefined) {
    // A request without `authorization` comes from a browser with a session, because programs send a token.
    if (request.headers.authorization === undefined) beginConsoleAnswer(response);
    if (admit === undefined)
      throw new Error(`${route.path} requires an operator, but this listener does not authenticate operators`);
    const operator = await admit(request, route.role ?? USUAL_ROLE);
    return route.handle({ ...visit, operator }, request, response);
  }
  if (route.auth === 'none') return route.handle(visit, request, response);
  if (route.auth === 'key') {
    if (identify === undefined)
      throw new Error(`${route.path} requires an API key, but this listener does not authenticate keys`);
    const key = await identify(request);
    facts.keyId = key.keyId;
    facts.accountId = key.accountId;
    const leave = enter?.(key) ?? (() => undefined);
    countFor(response, key.accountId);
    try {
      await route.handle({ ...visit, accountId: key.accountId, key }, request, response);
    } finally {
      whenClosed(response, leave);
    }
    return;
  }
  beginConsoleAnswer(response);
  refuseOtherSites(request);
  if (route.auth === 'page') return route.handle(visit, request, response);
  if (signedIn === undefined)
    throw new Error(`${route.path} requires a session, but this listener does not authenticate sessions`);
  const session = await signedIn(request);
  facts.accountId = session.user.accountId;
  countFor(response, session.user.accountId);
  requireRole(session.user, route.roles);
  const { accountId, role } = session.user;
  const stillAllowed = async () => {
    const { user } = await signedIn(request);
    if (user.role !== role) throw fail('FORBIDDEN', { message: 'Your role has just changed. Load the page again.' });
  };
  const known = { accountId, memberId: ownOnly(session.user), session, stillAllowed };
  await route.handle({ ...visit, ...known }, request, response);
}

function methodNotAllowed(allow: readonly string[]): GatewayError {
  const methods = allow.join(', ');
  return fail('METHOD_NOT_ALLOWED', {
    message: `This path accepts only the methods ${methods}.`,
    headers: { allow: methods },
  });
}

function render(
  error: unknown,
  requestId: string,
  request: IncomingMessage,
  response: ServerResponse,
  log: Logger,
): string | undefined {
  // Writes nothing if the client has disconnected. In most such cases, the disconnect itself caused the error.
  if (response.destroyed || (response.socket?.destroyed ?? true)) {
    response.destroy();
    return undefined;
  }
  const shown = toGatewayError(error);
  if (shown.code === 'INTERNAL_ERROR')
    log.error({ requestId, error: safeErrorFields(error) }, 'a route handler threw an unexpected error');
  // If the response has begun, destroys the connection, because the client must not take the partial response for a complete one.
  if (response.headersSent) response.destroy();
  else sendError(request, response, shown, requestId);
  return shown.code;
}
