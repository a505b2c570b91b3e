import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Route } from '../../core/api/route';
import { compileRoutes, type ServeOptions } from '../../core/api/router';
import { fail } from '../../core/base/errors';
import { sendError } from '../../core/http/http';
import type { Operator } from '../../core/operators/operators';
import { quiet } from './databases';

export interface TestServer {
  readonly url: string;
  close(): Promise<void>;
}

export async function listen(listener: RequestListener): Promise<TestServer> {
  const server = createServer(listener);
  // Uses the product's timeout: after Node's default of 5 s the server could close a connection just when a test reuses it.
  server.keepAliveTimeout = 75_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** The default operator of the admin routes. */
const OWNER: Operator = { name: 'admin', role: 'owner', actor: 'admin', expiresAt: undefined };

/** Starts a real server with some routes of one listener; every other path is 404. */
export function serveRoutes(routes: readonly Route[], options: ServeOptions = {}): Promise<TestServer> {
  const router = compileRoutes(routes);
  return listen((request, response) => {
    void router.serve(request, response, { log: quiet, admit: async () => OWNER, ...options }).then((served) => {
      if (!served) sendError(request, response, fail('NOT_FOUND'), 'req_none');
    });
  });
}
