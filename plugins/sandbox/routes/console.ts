import { asSessionRoute } from '../../../core/console-route';
import type { AccountRoute, Route } from '../../../core/plugin';

/** What of the API the console shows, and where: docs/console.md. */
const SHOWN: Readonly<Record<string, string>> = {
  'GET /v1/sandbox-history': '/sandboxes',
  'GET /v1/sandboxes/{id}': '/sandboxes/{id}',
  'GET /v1/sandboxes/{id}/audit': '/sandboxes/{id}/audit',
  'DELETE /v1/sandboxes/{id}': '/sandboxes/{id}',
};

/** The same answers for whoever is signed in to the account. */
export function consoleRoutes(routes: readonly AccountRoute[]): readonly Route[] {
  return routes.flatMap((route) => {
    const path = SHOWN[`${route.method} ${route.path}`];
    return path === undefined ? [] : [asSessionRoute(route, path)];
  });
}
