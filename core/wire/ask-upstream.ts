import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Candidate } from '../catalog/catalog';
import type { AnswerBeginning, BodyEdit, ModelCall } from '../catalog/upstream';
import { applyBodyEdits, type RequestBody } from './body-edits';
import { Exchange } from './exchange';

/** What of a call goes to an upstream. */
export interface UpstreamCall extends Omit<ModelCall, 'model' | 'streamUsage'> {
  readonly body: RequestBody;
  /** Changes that hold at every upstream; `members` has them already. */
  readonly edits?: readonly BodyEdit[];
  /** The answer has begun elsewhere and is to be gone on with. */
  readonly beginning?: AnswerBeginning;
}

/** Bodies up to this size go out as one buffer. */
const ONE_BUFFER_BYTES = 64 * 1024;

/** Asks a candidate once, in its adapter's dialect and with the platform's credential. `reset`: on a connection of its own. */
export function askUpstream(
  { upstream, model, adapter }: Pick<Candidate, 'upstream' | 'model' | 'adapter'>,
  request: UpstreamCall,
  dispatcher: Dispatcher,
  reset = false,
): Exchange {
  const { protocol, stream, query, headers, members } = request;
  const { streamUsage } = upstream;
  const call: ModelCall = { protocol, model: model.name, stream, query, headers, members, streamUsage };
  const wanted = adapter.request(call, upstream.adapterSettings);
  const { chunks, byteLength } = applyBodyEdits(request.body, [
    ...(request.edits ?? []),
    ...wanted.edits,
    ...prefillOf(adapter, call, request.beginning),
  ]);
  return new Exchange(dispatcher, {
    method: 'POST',
    reset,
    path: basePath(upstream.url) + wanted.path,
    headers: Object.assign(
      {},
      headers,
      { 'content-length': String(byteLength), 'accept-encoding': 'identity' },
      wanted.headers,
      adapter.authorize(upstream.credential ?? '', upstream.adapterSettings),
    ),
    body: byteLength <= ONE_BUFFER_BYTES ? Buffer.concat(chunks, byteLength) : Readable.from(chunks),
  });
}

function prefillOf(
  { continuation }: Candidate['adapter'],
  call: ModelCall,
  beginning: UpstreamCall['beginning'],
): readonly BodyEdit[] {
  return beginning === undefined ? [] : (continuation?.prefill(call, beginning) ?? []);
}

function basePath({ pathname }: URL): string {
  return pathname.endsWith('/') ? pathname.slice(0, -1) : pathname;
}
