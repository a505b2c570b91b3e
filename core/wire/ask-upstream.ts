import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Candidate, ModelEntry, Upstream } from '../catalog/catalog';
import type { BodyEdit, ModelCall, UpstreamRequest } from '../catalog/upstream';
import { CACHE_NAMES, NAMES_CACHES } from '../protocols/cache-names';
import { type CostFactors, type LimitPlace, piecesOf } from '../protocols/cost-factors';
import { applyBodyEdits, type EditedBody, type ItemSpan, planCuts, type RequestBody, type Splice } from './body-edits';
import { Exchange } from './exchange';
import { signedHeaders } from './signed-headers';

/** The parts of a call that go to an upstream. */
export interface UpstreamCall extends Omit<ModelCall, 'model' | 'streamUsage'> {
  readonly body: RequestBody;
  /** The number of turns, parts and tools in the body; absent for a request that the gateway makes for itself. */
  readonly entries?: number;
  /** The changes of the body that every upstream gets. `members` already has the changed values. */
  readonly edits?: readonly BodyEdit[];
  /** The tools in the body whose maximum number of uses depends on the model. */
  readonly reading?: Pick<CostFactors, 'toolUses'>;
  /** The positions of parts with signatures that this upstream would reject, because another dialect made them. */
  readonly sealed?: readonly ItemSpan[] | undefined;
  /** The unique name of the account that keeps its entries in a vendor's prompt cache apart. It is sent to upstreams with `isolateCaches`. */
  readonly ownCache?: string | undefined;
  /** Whether the vendor must keep nothing of the call, also where it is translated into a protocol that asks for that by a member. */
  readonly keepsNothing?: true;
  /** The finished request, if the call was translated into the adapter's own dialect. */
  readonly prepared?: UpstreamRequest;
}

/** Bodies up to this size are joined into one buffer, which costs less than several writes. */
const ONE_BUFFER_BYTES = 64 * 1024;

type UpstreamTarget = Pick<Candidate, 'upstream' | 'model' | 'adapter'>;

/**
 * Sends one request to a candidate, in its adapter's dialect and with the platform's credential. Returns a promise if the adapter signs.
 * With `reset` it opens a new connection. With `bounded` the caller limits the time until the head of the answer.
 */
export function askUpstream(
  candidate: UpstreamTarget,
  request: UpstreamCall,
  dispatcher: Dispatcher,
  reset = false,
  bounded = false,
): Exchange | Promise<Exchange> {
  const { upstream, adapter } = candidate;
  const { path, headers, chunks, byteLength } = outgoing(candidate, request);
  const method = 'POST';
  headers['content-length'] = String(byteLength);
  headers['accept-encoding'] = 'identity';
  const dispatch = (signed: Outgoing['headers']) => {
    const body = asSent(chunks, byteLength);
    const options: Dispatcher.DispatchOptions = { method, reset, path, headers: signed, body };
    if (bounded) options.headersTimeout = 0;
    return new Exchange(dispatcher, options);
  };
  const signed = signedHeaders(upstream, adapter, { method, path, headers, chunks });
  return signed instanceof Promise ? signed.then(dispatch) : dispatch(signed);
}

/**
 * Returns a body in the form in which undici sends it. Each request gets a new object, by which `Exchange` knows whether the body was sent.
 * undici also accepts iterables, which its types do not say: they cost less than a stream.
 */
function asSent(chunks: readonly Buffer[], byteLength: number): Buffer | Readable {
  const [first] = chunks;
  if (first !== undefined && chunks.length === 1) return first.subarray();
  if (byteLength <= ONE_BUFFER_BYTES) return Buffer.concat(chunks, byteLength);
  return chunks.slice() as Iterable<Buffer> as unknown as Readable;
}

/** The request for the upstream, over HTTP or a WebSocket. */
export interface Outgoing extends EditedBody {
  readonly path: string;
  /** The headers: a new object for each request, because the transport adds its own headers to it. */
  readonly headers: Record<string, string>;
}

/**
 * Returns a call in the dialect of a candidate's adapter, without a credential. `further` are changes of the body that the transport (HTTP
 * or WebSocket) needs.
 */
export function outgoing(
  { upstream, model, adapter }: UpstreamTarget,
  request: UpstreamCall,
  further: readonly BodyEdit[] = [],
): Outgoing {
  const { protocol, operation, stream, query, headers, members } = request;
  const { streamUsage } = upstream;
  const call: ModelCall = { protocol, operation, model: model.name, stream, query, headers, members, streamUsage };
  const wanted = request.prepared ?? adapter.request(call, upstream.adapterSettings);
  const edits = [...(request.edits ?? []), ...isolation(upstream, request), ...wanted.edits, ...further];
  const { chunks, byteLength } = applyBodyEdits(request.body, edits, changesInside(request, model));
  return {
    path: basePath(upstream.url) + wanted.path,
    headers: Object.assign({}, headers, wanted.headers),
    chunks,
    byteLength,
  };
}

/**
 * Returns the change that puts the account's unique cache name into the body, so that accounts share no prompt cache. Returns none if the
 * request names a cache.
 */
function isolation({ isolateCaches }: Upstream, { protocol, members, ownCache, prepared }: UpstreamCall): BodyEdit[] {
  if (isolateCaches !== true || ownCache === undefined || prepared !== undefined) return [];
  const [member] = CACHE_NAMES;
  if (!NAMES_CACHES.has(protocol) || (members.get(member) ?? 'null') !== 'null') return [];
  return [{ member, set: JSON.stringify(ownCache) }];
}

/** Returns the changes inside of body members that this upstream needs: limits on tool uses, and cuts of signatures from other dialects. */
function changesInside({ body, reading, sealed }: UpstreamCall, model: ModelEntry): readonly Splice[] | undefined {
  const limits = limitsOf(reading?.toolUses, model);
  return sealed === undefined ? limits : [...(limits ?? []), ...planCuts(body.chunks, sealed)];
}

/** Returns splices that set the limit of each tool use whose limit is absent or too high. Tools that share a limit get the smallest one. */
function limitsOf(toolUses: CostFactors['toolUses'], model: Candidate['model']): readonly Splice[] | undefined {
  if (toolUses === undefined) return undefined;
  const usesAt = new Map<LimitPlace, number>();
  for (const tool of toolUses) {
    const uses = piecesOf(tool, model);
    const place = tool.limit?.insert ?? (uses < (tool.pieces ?? 0) ? tool.limit?.own : undefined);
    if (place !== undefined) usesAt.set(place, Math.min(usesAt.get(place) ?? Number.POSITIVE_INFINITY, uses));
  }
  return [...usesAt].map(([{ from, to, name }, uses]) => ({
    from,
    to,
    text: name === undefined ? String(uses) : `${JSON.stringify(name)}:${uses},`,
  }));
}

function basePath({ pathname }: URL): string {
  return pathname.endsWith('/') ? pathname.slice(0, -1) : pathname;
}
