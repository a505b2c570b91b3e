import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { ApiKeys, CallKey } from '../accounts/identify';
import { fail, type GatewayError } from '../errors';
import { newRequestId, sendError, setRequestId } from '../http/http';
import { pathOf } from '../http/request-target';
import { log as standardLog } from '../log';
import type { Operators } from '../operators/operators';
import { USUAL_ROLE } from '../operators/roles';
import { beginConsoleAnswer, refuseOtherSites } from '../sign-in/console-requests';
import type { Session } from '../sign-in/sessions';
import { describeFault } from '../thrown';
import { type RequestFacts, requestEnded } from './request-ended';
import type { Handler, Route, UpgradeHandler, Visit } from './route';
import { RouteTable } from './route-table';
import { toGatewayError } from './thrown';

export interface ServeOptions {
  /** Who shows which valid key; `confirmedKey(keys)`. Routes with `auth: 'key'` cannot be served without it. */
  readonly identify?: (request: IncomingMessage) => Promise<CallKey>;
  /** Who is signed in; `signedIn(database)`. Routes with `auth: 'session'` cannot be served without it. */
  readonly signedIn?: (request: IncomingMessage) => Promise<Session>;
  /** Whose token lets them do this; `Operators.admit`. Routes of the admin listener cannot be served without it. */
  readonly admit?: Operators['admit'];
  readonly log?: Logger;
}

/** The endpoints of one listener. */
export interface Router {
  /** The methods a path answers to, HEAD where there is GET; empty when nothing is there. */
  methodsOf(path: string): readonly string[];
  /**
   * Answers a request: finds its route, runs auth and handler, renders what is thrown through the error catalogue. Resolves
   * when the handler is done; never rejects.
   * @returns false, with nothing touched, when no route has this path.
   */
  serve(request: IncomingMessage, response: ServerResponse, options: ServeOptions): Promise<boolean>;
  /** What takes an upgrade of this path; undefined when nothing does. */
  upgradeOf(path: string): { readonly take: UpgradeHandler; readonly params: Visit['params'] } | undefined;
}

/** @throws Error when two routes answer the same, or when routes of both listeners are given: they must never mix. */
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
          // Of the admin listener's paths operators alone learn.
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

/** Runs a handler; what it throws is rendered through the error catalogue. Never rejects. */
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

/** Finds the key and reads its status: endpoints without a reservation have no other moment to notice a revoked key. */
export function confirmedKey(keys: ApiKeys): (request: IncomingMessage) => Promise<CallKey> {
  return async (request) => keys.confirm(await keys.identify(request));
}

async function answer(
  route: Route,
  visit: Visit,
  facts: RequestFacts,
  request: IncomingMessage,
  response: ServerResponse,
  { identify, signedIn, admit }: ServeOptions,
): Promise<void> {
  if (route.listener === 'admin' && route.auth === undefined) {
    // A browser with a session: programs show a token.
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
    return route.handle({ ...visit, accountId: key.accountId, key }, request, response);
  }
  beginConsoleAnswer(response);
  refuseOtherSites(request);
  if (route.auth === 'page') return route.handle(visit, request, response);
  if (signedIn === undefined)
    throw new Error(`${route.path} requires a session, but this listener does not authenticate sessions`);
  const session = await signedIn(request);
  facts.accountId = session.user.accountId;
  await route.handle({ ...visit, accountId: session.user.accountId, session }, request, response);
}

function methodNotAllowed(allow: readonly string[]): GatewayError {
  const methods = allow.join(', ');
  return fail('METHOD_NOT_ALLOWED', { message: `This address accepts ${methods}.`, headers: { allow: methods } });
}

/** Returns the code that the client is told. */
function render(
  error: unknown,
  requestId: string,
  request: IncomingMessage,
  response: ServerResponse,
  log: Logger,
): string | undefined {
  // The client has left: nobody to tell, and what was thrown is most often the news of that.
  if (response.destroyed || (response.socket?.destroyed ?? true)) {
    response.destroy();
    return undefined;
  }
  const shown = toGatewayError(error);
  if (shown.code === 'INTERNAL_ERROR')
    log.error({ requestId, error: describeFault(error) }, 'a route handler threw an unexpected error');
  // Half an answer must not end as if it were whole.
  if (response.headersSent) response.destroy();
  else sendError(request, response, shown, requestId);
  return shown.code;
}
