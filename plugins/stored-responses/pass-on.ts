import type { KeyHandler, Method } from '../../core/api/route';
import { type ErrorCode, fail } from '../../core/errors';
import { askVendor, type Parts } from './ask-vendor';

const ERRORS: readonly ErrorCode[] = [
  'KEPT_OBJECT_NOT_FOUND',
  'UPSTREAM_RATE_LIMITED',
  'ALL_PROVIDERS_FAILED',
  'DATABASE_UNAVAILABLE',
  'UPSTREAM_TIMEOUT',
];

/** The common parts of the endpoints of stored responses. */
export const PROXIED = { listener: 'public', auth: 'key', errors: ERRORS } as const;

/** Returns the handler that forwards a request to the vendor that keeps the response, with `after` behind the id. */
export function passOn(gateway: Parts, method: Method, after: string): KeyHandler {
  return async ({ accountId, params, query }, request, response) => {
    if (query.get('stream') === 'true') throw fail('INVALID_FIELD', { param: 'stream', message: NO_STREAM });
    const search = query.size === 0 ? '' : `?${query}`;
    await askVendor(gateway, { accountId, id: params['id'] ?? '', method, after: after + search }, request, response);
  };
}

const NO_STREAM = 'stream: this gateway does not stream stored responses again';
