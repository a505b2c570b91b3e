import type { IncomingMessage } from 'node:http';
import type { AccountRoute, Route } from '../../../core/api/route';
import { type ErrorCode, fail, GatewayError } from '../../../core/base/errors';
import type { Schema } from '../../../core/base/settings';
import type { BodyOwner } from '../../../core/http/buffered-bytes';
import { largeJsonBody } from '../../../core/http/http';

type KeyRoute = Extract<Route, { auth: 'key' }>;
export type KeyVisit = Parameters<KeyRoute['handle']>[0];
type Named = 'listener' | 'auth' | 'method' | 'path' | 'summary';

/** Makes a route that needs an API key. */
export function byKey(method: Route['method'], path: string, summary: string, rest: Omit<KeyRoute, Named>): Route {
  return { listener: 'public', auth: 'key', method, path, summary, ...rest };
}

/** Makes a route that needs an API key and uses only its account, so that the console can serve the route too. */
export function byAccount(
  method: Route['method'],
  path: string,
  summary: string,
  rest: Omit<AccountRoute, Named>,
): AccountRoute {
  return { listener: 'public', auth: 'key', method, path, summary, ...rest };
}

/** Reads a JSON body. `codes` replaces general error codes with those of the sandbox endpoints. */
export function bodyReader<T>(schema: Schema, maxBytes: number, codes: Partial<Record<ErrorCode, ErrorCode>>) {
  const read = largeJsonBody<T>(schema, maxBytes);
  return (request: IncomingMessage, owner: BodyOwner): Promise<T> =>
    read(request, owner).catch((error: unknown) => {
      const code = error instanceof GatewayError ? codes[error.code as ErrorCode] : undefined;
      if (!(error instanceof GatewayError) || code === undefined) throw error;
      throw fail(code, { ...error.options, message: error.message });
    });
}
