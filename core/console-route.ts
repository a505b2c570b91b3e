import type { AccountRoute, Handler, Method, Route, SessionHandler } from './plugin';

/** Routes of the console's interface, which docs/console.md describes. */

const API = '/console/api';

/** What the page may ask before anybody has signed in. */
export function pageRoute(method: Method, path: string, handle: Handler): Route {
  return { listener: 'public', auth: 'page', method, path: API + path, summary: '', answers: {}, handle };
}

export function sessionRoute(method: Method, path: string, handle: SessionHandler): Route {
  return { listener: 'public', auth: 'session', method, path: API + path, summary: '', answers: {}, handle };
}

/** The same as `route` for whoever is signed in to the account. */
export function asSessionRoute({ method, handle }: AccountRoute, path: string): Route {
  return sessionRoute(method, path, handle);
}
