import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { CallKey } from '../../core/accounts/identify';
import type { Method } from '../../core/api/route';
import { fail, type GatewayError } from '../../core/base/errors';
import { keptCandidate } from '../../core/calls/candidates';
import { demandsIn, demandsUnder } from '../../core/calls/demanded';
import type { Upstream } from '../../core/catalog/catalog';
import { type Demands, declaredOf, exclusionOf, isOfContent } from '../../core/catalog/demands';
import { PROTOCOLS } from '../../core/catalog/protocols';
import type { ModelCall, UpstreamAdapter, UpstreamRequest } from '../../core/catalog/upstream';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';
import { isAboutCredential, RATE_LIMITED } from '../../core/health/credentials';
import type { AttemptFailure, UpstreamHealth } from '../../core/health/health';
import { whenClosed } from '../../core/http/http';
import { bytesOf } from '../../core/wire/chunk-reader';
import { nothingWasSent } from '../../core/wire/dial-failure';
import { classifyDialFailure } from '../../core/wire/egress';
import { decodedChunks, Exchange } from '../../core/wire/exchange';
import { signedHeaders } from '../../core/wire/signed-headers';
import { type ExchangeHead, retryAfterMs } from '../../core/wire/upstream-exchange';

export type VendorQueryContext = Pick<PluginGateway, 'catalog' | 'egress' | 'health' | 'vendorResources' | 'keys'>;

/** The requested response and the key that requests it. */
interface VendorQuery {
  readonly key: CallKey;
  readonly id: string;
  readonly method: Method;
  /** The part of the URL after the response's id: its path and query. */
  readonly after: string;
}

interface ResponseLocation {
  readonly upstream: Upstream;
  readonly adapter: UpstreamAdapter;
}

/**
 * Forwards a request to the upstream and credential that keep a response, and relays the answer unchanged, as fast as the client reads it.
 * If the upstream breaks off the answer, the gateway breaks it off for the client too. The request counts towards the key's limit per
 * minute, and its outcome for the health of the upstream. Under demands for what happens to content, an upstream that no longer meets them is
 * asked for no answer; it may still be asked to delete or cancel one.
 * @throws INVALID_FIELD, NO_CANDIDATE_ALLOWED, KEY_RATE_LIMITED, KEPT_OBJECT_NOT_FOUND, UPSTREAM_RATE_LIMITED, ALL_PROVIDERS_FAILED, UPSTREAM_TIMEOUT, DATABASE_UNAVAILABLE
 */
export async function askVendor(
  gateway: VendorQueryContext,
  asked: VendorQuery,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { settings } = await gateway.keys.countCall(asked.key);
  const place = await placeOf(gateway, asked);
  const demands = demandsUnder(settings, { demands: demandsIn(request.headers) });
  if (asked.method === 'GET') assertMayKeep(place, demands);
  const outcome = new NotedOutcome(gateway.health, place, asked.key);
  const exchange = await ask(gateway, place, asked);
  const { connectMs, headersMs } = place.upstream.timeouts;
  const patience = setTimeout(() => exchange.cancel(new TookTooLong()), connectMs + headersMs);
  whenClosed(response, () => exchange.cancel());
  const head = await exchange.head
    .catch((error: unknown) => {
      outcome.failed(error);
      throw failureOf(error, place.upstream.name);
    })
    .finally(() => clearTimeout(patience));
  if (head.status >= 400) outcome.refused(head);
  const chunks = decodedChunks(exchange, head);
  response.writeHead(head.status, headersFor(place, head, chunks === exchange));
  if (request.method === 'HEAD') {
    exchange.cancel();
    response.end();
    outcome.answered();
    return;
  }
  await pipeline(noting(bytesOf(chunks), outcome), response).catch(() => response.destroy());
}

async function ask({ egress }: VendorQueryContext, place: ResponseLocation, asked: VendorQuery): Promise<Exchange> {
  const { upstream, adapter } = place;
  const { path, headers } = addressOf(place, asked);
  const method = asked.method as 'GET';
  const unsigned = { ...headers, 'accept-encoding': 'identity' };
  const signed = await signedHeaders(upstream, adapter, { method, path, headers: unsigned, chunks: [] });
  return new Exchange(egress.pool(upstream), { method, path, headers: signed });
}

function headersFor(
  { upstream }: ResponseLocation,
  { headers }: ExchangeHead,
  isAsSent: boolean,
): Record<string, string> {
  const { 'content-type': type = 'application/json', 'retry-after': retryAfter, 'content-length': length } = headers;
  return {
    'content-type': String(type),
    'x-svc-source': 'provider',
    'x-routing-provider': upstream.name,
    ...(typeof retryAfter === 'string' && { 'retry-after': retryAfter }),
    ...(typeof length === 'string' && isAsSent && { 'content-length': length }),
  };
}

/** Passes on the bytes of an answer, and records whether the answer was complete. A client that disconnects is no failure. */
async function* noting(bytes: AsyncIterable<Buffer>, outcome: NotedOutcome): AsyncGenerator<Buffer> {
  try {
    yield* bytes;
  } catch (error) {
    outcome.failed(error);
    throw error;
  }
  outcome.answered();
}

/** Records the outcome of a request for the health of its upstream, once. */
class NotedOutcome {
  readonly #startedMs = performance.now();
  #isNoted = false;

  constructor(
    private readonly health: UpstreamHealth,
    private readonly place: ResponseLocation,
    private readonly key: Pick<CallKey, 'accountId'>,
  ) {}

  answered(): void {
    if (this.#isFirst())
      this.health.answered(this.place, { accountId: this.key.accountId, ms: this.#ms, stream: false });
  }

  /** Records that no answer came, or that the upstream broke it off. */
  failed(error: unknown): void {
    const outcome = error instanceof TookTooLong ? 'timeout' : classifyDialFailure(error);
    this.#failed({
      outcome,
      status: undefined,
      verdict: 'next',
      retryAfterMs: undefined,
      isDial: nothingWasSent(error),
    });
  }

  /**
   * Records an answer with an error status. Status 401 and 403 are ignored: a credential that may not read may still make calls, and
   * pausing it would hurt the calls of all accounts.
   */
  refused({ status, headers }: ExchangeHead): void {
    if (isAboutCredential(status) && status !== RATE_LIMITED) this.#isNoted = true;
    const verdict = this.place.adapter.judge({ protocol: 'responses', status, headers, body: undefined });
    this.#failed({ outcome: 'status', status, verdict, retryAfterMs: retryAfterMs(headers) });
  }

  #failed(failure: AttemptFailure): void {
    const attempt = { accountId: this.key.accountId, ms: this.#ms, mayEject: true };
    if (this.#isFirst()) this.health.failed(this.place, failure, attempt);
  }

  get #ms(): number {
    return Math.round(performance.now() - this.#startedMs);
  }

  #isFirst(): boolean {
    const isFirst = !this.#isNoted;
    this.#isNoted = true;
    return isFirst;
  }
}

/** Returns the URL of the response: the URL of the adapter's calls, followed by the id. */
function addressOf(
  { upstream, adapter }: ResponseLocation,
  { id, after }: VendorQuery,
): Pick<UpstreamRequest, 'path' | 'headers'> {
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
  // An adapter from another package may leave `operation` out of its path. In that case the gateway builds the path itself.
  return {
    path: base + (path.includes(operation) ? path : `${PROTOCOLS.responses.path}${operation}${query ?? ''}`),
    headers,
  };
}

class TookTooLong extends Error {
  override readonly name = 'TookTooLong';
}

async function placeOf(
  { catalog, health, vendorResources }: VendorQueryContext,
  { key, id }: VendorQuery,
): Promise<ResponseLocation> {
  const kept = await vendorResources.find(key.accountId, 'previous_response_id', id);
  const places = catalog.upstreams.flatMap((upstream): readonly ResponseLocation[] => {
    const adapter = upstream.adapters.find(({ protocols }) => protocols.includes('responses'));
    const isIts = upstream.name === kept?.upstream && upstream.credentials.some(({ name }) => name === kept.credential);
    return adapter === undefined || !isIts || upstream.disabled !== undefined ? [] : [{ upstream, adapter }];
  });
  if (kept === undefined || places.length === 0)
    throw fail('KEPT_OBJECT_NOT_FOUND', { param: 'id', message: NOT_FOUND });
  return keptCandidate(places, { ...kept, param: 'id' }, health);
}

/** @throws NO_CANDIDATE_ALLOWED if the upstream, with any of its models, breaks a demand for region, retention or training */
function assertMayKeep({ upstream }: ResponseLocation, demands: Demands | undefined): void {
  if (demands?.areOfContent !== true) return;
  const exclusion = upstream.models
    .map((model) => exclusionOf(demands, declaredOf(model, model.price)))
    .find((each) => each !== undefined && isOfContent(each.fact));
  if (exclusion === undefined) return;
  throw fail('NO_CANDIDATE_ALLOWED', {
    param: 'id',
    message: `The upstream that keeps this response does not meet the demands of this call: ${demands.text}.`,
    details: { excluded: [{ upstream: upstream.name, ...exclusion }] },
  });
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
