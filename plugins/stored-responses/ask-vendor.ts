import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Method } from '../../core/api/route';
import { keptCandidate } from '../../core/calls/candidates';
import type { Upstream } from '../../core/catalog/catalog';
import { PROTOCOLS } from '../../core/catalog/protocols';
import type { ModelCall, UpstreamAdapter, UpstreamRequest } from '../../core/catalog/upstream';
import { fail, type GatewayError } from '../../core/errors';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';
import { whenClosed } from '../../core/http/http';
import { bytesOf } from '../../core/wire/chunk-reader';
import { classifyDialFailure } from '../../core/wire/egress';
import { decodedChunks, Exchange } from '../../core/wire/exchange';
import { signedHeaders } from '../../core/wire/signed-headers';

export type Parts = Pick<PluginGateway, 'catalog' | 'egress' | 'health' | 'keptObjects'>;

/** The requested response and the account that requests it. */
interface Asked {
  readonly accountId: string;
  readonly id: string;
  readonly method: Method;
  /** The path and query after the id. */
  readonly after: string;
}

interface Place {
  readonly upstream: Upstream;
  readonly adapter: UpstreamAdapter;
}

/**
 * Forwards a request to the upstream and credential that keep a response, and relays the answer unchanged, as fast as the client
 * reads it. An answer that breaks off breaks off for the client too.
 * @throws KEPT_OBJECT_NOT_FOUND, UPSTREAM_RATE_LIMITED, ALL_PROVIDERS_FAILED, UPSTREAM_TIMEOUT, DATABASE_UNAVAILABLE
 */
export async function askVendor(
  gateway: Parts,
  asked: Asked,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const place = await placeOf(gateway, asked);
  const { upstream, adapter } = place;
  const { path, headers } = addressOf(place, asked);
  const method = asked.method as 'GET';
  const unsigned = { ...headers, 'accept-encoding': 'identity' };
  const signed = await signedHeaders(upstream, adapter, { method, path, headers: unsigned, chunks: [] });
  const exchange = new Exchange(gateway.egress.pool(upstream), { method, path, headers: signed });
  const { connectMs, headersMs } = upstream.timeouts;
  const patience = setTimeout(() => exchange.cancel(new TookTooLong()), connectMs + headersMs);
  whenClosed(response, () => exchange.cancel());
  const head = await exchange.head
    .catch((error: unknown) => Promise.reject(failureOf(error, upstream.name)))
    .finally(() => clearTimeout(patience));
  const chunks = decodedChunks(exchange, head);
  const {
    'content-type': type = 'application/json',
    'retry-after': retryAfter,
    'content-length': length,
  } = head.headers;
  response.writeHead(head.status, {
    'content-type': String(type),
    'x-svc-source': 'provider',
    'x-routing-provider': upstream.name,
    ...(typeof retryAfter === 'string' && { 'retry-after': retryAfter }),
    ...(typeof length === 'string' && chunks === exchange && { 'content-length': length }),
  });
  if (request.method === 'HEAD') {
    exchange.cancel();
    response.end();
    return;
  }
  await pipeline(bytesOf(chunks), response).catch(() => response.destroy());
}

/** Returns the address of the response: that of the adapter's calls, followed by the id. */
function addressOf({ upstream, adapter }: Place, { id, after }: Asked): Pick<UpstreamRequest, 'path' | 'headers'> {
  const [behind = '', query] = after.split(/(?=\?)/);
  const operation = `/${encodeURIComponent(id)}${behind}`;
  const call: ModelCall = {
    protocol: 'responses',
    operation,
    model: '',
    stream: false,
    query: query ?? '',
    headers: { accept: 'application/json' },
    members: new Map(),
    streamUsage: upstream.streamUsage,
  };
  const { path, headers } = adapter.request(call, upstream.adapterSettings);
  const base = upstream.url.pathname.replace(/\/$/, '');
  // A package's adapter may ignore `operation`.
  return {
    path: base + (path.includes(operation) ? path : `${PROTOCOLS.responses.path}${operation}${query ?? ''}`),
    headers,
  };
}

class TookTooLong extends Error {
  override readonly name = 'TookTooLong';
}

async function placeOf({ catalog, health, keptObjects }: Parts, { accountId, id }: Asked): Promise<Place> {
  const kept = await keptObjects.find(accountId, 'previous_response_id', id);
  const places = catalog.upstreams.flatMap((upstream): readonly Place[] => {
    const adapter = upstream.adapters.find(({ protocols }) => protocols.includes('responses'));
    const isIts = upstream.name === kept?.upstream && upstream.credentials.some(({ name }) => name === kept.credential);
    return adapter === undefined || !isIts || upstream.disabled !== undefined ? [] : [{ upstream, adapter }];
  });
  if (kept === undefined || places.length === 0)
    throw fail('KEPT_OBJECT_NOT_FOUND', { param: 'id', message: NOT_FOUND });
  return keptCandidate(places, { ...kept, param: 'id' }, health);
}

const NOT_FOUND = 'No response with this id was created by this account through this gateway, or it has expired.';

function failureOf(error: unknown, upstream: string): GatewayError {
  const isLate = error instanceof TookTooLong || classifyDialFailure(error) === 'timeout';
  const outcome = isLate ? 'timeout' : 'reset';
  return fail(isLate ? 'UPSTREAM_TIMEOUT' : 'ALL_PROVIDERS_FAILED', {
    details: { attempts: [{ upstream, outcome }] },
    cause: error,
  });
}
