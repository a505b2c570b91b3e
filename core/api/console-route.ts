import type { AccountRoute, Route } from './route';

/** Returns the same endpoint at a path of the console, for a person who is signed in to the account. */
export function asSessionRoute(route: AccountRoute, path: `/console/api/${string}`): Route {
  return { ...route, auth: 'session', path };
}
