import { Readable } from 'node:stream';
import { applyBodyEdits } from '../../core/body-edits';
import type { Answer, AttemptOutcome, ModelRequest, UpstreamHeaders } from '../../core/call';
import type { Candidate, Upstream } from '../../core/catalog';
import { ChunkReader } from '../../core/chunk-reader';
import { classifyDialFailure, type Egress, wasReusedConnection } from '../../core/egress';
import { EventReader, type NotedEvent } from '../../core/event-reader';
import type { UpstreamRequest, Verdict } from '../../core/upstream';
import type { Failure } from './decide';

/** What one try at one candidate came to. A failure that was an answer can still be relayed. */
export type Attempted =
  | { readonly answer: Answer }
  | { readonly failure: Failure; readonly relay: (Answer & { readonly kind: 'relay' }) | undefined };

export interface AttemptLimits {
  readonly preambleHoldMs: number;
  /** Aborted when the client leaves. */
  readonly left: AbortSignal;
}

/** An unstreamed answer is kept whole until it is charged for; nobody sends more than this. */
const LARGEST_ANSWER_BYTES = 64 * 1024 * 1024;
const LARGEST_JUDGED_BYTES = 64 * 1024;
/** Bodies up to this size go out as one buffer. */
const ONE_BUFFER_BYTES = 64 * 1024;

/** Asks one candidate and waits until it is clear whether it answers: the first content, the whole body, or a failure. */
export async function attempt(
  candidate: Candidate,
  request: ModelRequest,
  egress: Egress,
  limits: AttemptLimits,
): Promise<Attempted> {
  const patience = new Patience(candidate.upstream, request.stream, limits.left);
  try {
    const response = await send(candidate, request, egress, patience.signal);
    patience.headArrived();
    const chunks = new ChunkReader(response.body, response.headers['content-encoding']);
    const head = { candidate, status: response.statusCode, headers: response.headers };
    if (response.statusCode >= 400) return await judge(head, request, chunks);
    if (response.statusCode >= 300) return { answer: { ...head, kind: 'relay', head: [], chunks } };
    if (isEventStream(response.headers)) return await untilContent(head, request, chunks, limits);
    return { answer: { ...head, kind: 'body', bytes: await readAll(chunks) } };
  } catch (error) {
    return {
      failure: {
        outcome: outcomeOf(error, patience, limits.left),
        status: undefined,
        verdict: 'next',
        retryAfterMs: undefined,
      },
      relay: undefined,
    };
  } finally {
    patience.stop();
  }
}

type Head = Pick<Answer, 'candidate' | 'status' | 'headers'>;

interface UpstreamResponse {
  readonly statusCode: number;
  readonly headers: UpstreamHeaders;
  readonly body: Readable;
}

/** Idle connections that an upstream closes at the very moment they are used again; after so many it is a failure. */
const STALE_CONNECTIONS_AT_MOST = 3;

async function send(
  candidate: Candidate,
  request: ModelRequest,
  egress: Egress,
  signal: AbortSignal,
): Promise<UpstreamResponse> {
  for (let stale = 0; ; stale += 1) {
    try {
      return await sendOnce(candidate, request, egress, signal);
    } catch (error) {
      const isFree = wasReusedConnection(error) && classifyDialFailure(error) === 'reset' && !signal.aborted;
      if (!isFree || stale === STALE_CONNECTIONS_AT_MOST) throw error;
    }
  }
}

function sendOnce(
  candidate: Candidate,
  request: ModelRequest,
  egress: Egress,
  signal: AbortSignal,
): Promise<UpstreamResponse> {
  const { upstream, model, adapter } = candidate;
  const wanted = adapter.request(
    { ...request, model: model.name, streamUsage: upstream.streamUsage },
    upstream.adapterSettings,
  );
  const body = applyBodyEdits(request.body, wanted.edits);
  return egress.pool(upstream).request({
    method: 'POST',
    path: basePath(upstream.url) + wanted.path,
    headers: headersOf(candidate, request, wanted, body.byteLength),
    body:
      body.byteLength <= ONE_BUFFER_BYTES ? Buffer.concat(body.chunks, body.byteLength) : Readable.from(body.chunks),
    signal,
  });
}

function basePath(url: URL): string {
  return url.pathname.endsWith('/') ? url.pathname.slice(0, -1) : url.pathname;
}

function headersOf(
  { upstream, adapter }: Candidate,
  request: ModelRequest,
  wanted: UpstreamRequest,
  byteLength: number,
): Record<string, string> {
  return {
    ...request.headers,
    'content-length': String(byteLength),
    'accept-encoding': 'identity',
    ...wanted.headers,
    ...adapter.authorize(upstream.credential ?? '', upstream.adapterSettings),
  };
}

function isEventStream(headers: UpstreamHeaders): boolean {
  return String(headers['content-type'] ?? '')
    .toLowerCase()
    .startsWith('text/event-stream');
}

async function readAll(chunks: ChunkReader): Promise<Buffer> {
  const read: Buffer[] = [];
  let byteLength = 0;
  for (let next = await chunks.take(); next.done !== true; next = await chunks.take()) {
    read.push(next.value);
    byteLength += next.value.length;
    if (byteLength > LARGEST_ANSWER_BYTES) {
      chunks.cancel();
      throw new Error(`the answer has more than ${LARGEST_ANSWER_BYTES} bytes`);
    }
  }
  return read.length === 1 && read[0] !== undefined ? read[0] : Buffer.concat(read, byteLength);
}

/** An answer that is not a success: the adapter says what it means. */
async function judge(head: Head, request: ModelRequest, chunks: ChunkReader): Promise<Attempted> {
  const read: Buffer[] = [];
  let byteLength = 0;
  let ended = false;
  while (byteLength <= LARGEST_JUDGED_BYTES) {
    const next = await chunks.take();
    ended = next.done === true;
    if (next.done === true) break;
    read.push(next.value);
    byteLength += next.value.length;
  }
  const verdict = head.candidate.adapter.judge({
    protocol: request.protocol,
    status: head.status,
    headers: head.headers,
    body: ended ? parseJson(Buffer.concat(read).toString('utf8')) : undefined,
  });
  return failed('status', head, verdict, { ...head, kind: 'relay', head: read, chunks });
}

function failed(
  outcome: Failure['outcome'],
  head: Head,
  verdict: Verdict,
  relay: Answer & { kind: 'relay' },
): Attempted {
  return { failure: { outcome, status: head.status, verdict, retryAfterMs: retryAfterMs(head.headers) }, relay };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function retryAfterMs(headers: UpstreamHeaders): number | undefined {
  const text = String(headers['retry-after'] ?? '');
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1_000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now());
}

/** Holds protocol preambles back until the first content, so that another upstream can still answer. */
async function untilContent(
  head: Head,
  request: ModelRequest,
  chunks: ChunkReader,
  limits: AttemptLimits,
): Promise<Attempted> {
  const events = new EventReader(head.candidate.adapter, request.choices);
  const held: NotedEvent[] = [];
  const answer = (): Attempted => ({ answer: { ...head, kind: 'stream', head: held, events, chunks } });
  let wake: NodeJS.Timeout | undefined;
  const heldLongEnough = new Promise<'held long enough'>((resolve) => {
    wake = setTimeout(resolve, limits.preambleHoldMs, 'held long enough');
  });
  try {
    for (;;) {
      const next = await Promise.race([chunks.peek(), heldLongEnough]);
      if (next === 'held long enough') return answer();
      await chunks.take();
      if (next.done === true) return events.isWhole ? answer() : lost(head, held, chunks);
      let releases = false;
      for (const event of events.read(next.value)) {
        const { note } = event;
        held.push(event);
        if (releases) continue;
        if (note.malformed === true) return lost(head, held, chunks);
        if (note.error !== undefined) {
          const failure = {
            protocol: request.protocol,
            status: head.status,
            headers: head.headers,
            body: note.error.body,
          };
          return failed('error_event', head, head.candidate.adapter.judge(failure), relayOf(head, held, chunks));
        }
        releases = note.content === true || note.finish === true || note.finalUsage === true || note.done === true;
      }
      if (releases) return answer();
    }
  } catch (error) {
    chunks.cancel();
    throw error;
  } finally {
    clearTimeout(wake);
  }
}

function relayOf(head: Head, held: readonly NotedEvent[], chunks: ChunkReader): Answer & { kind: 'relay' } {
  return { ...head, kind: 'relay', head: held.map(({ raw }) => raw), chunks };
}

/** The stream ended or became unreadable before any content. */
function lost(head: Head, held: readonly NotedEvent[], chunks: ChunkReader): Attempted {
  return failed('reset', head, 'next', relayOf(head, held, chunks));
}

function outcomeOf(
  error: unknown,
  patience: Patience,
  left: AbortSignal,
): Exclude<AttemptOutcome, 'answered' | 'relayed'> {
  if (left.aborted) return 'cancelled';
  if (patience.isOver) return 'timeout';
  return classifyDialFailure(error);
}

/** Connecting and waiting for the head of the answer together take at most this long; spec section 8. */
const LONGEST_WAIT_FOR_HEAD_MS = 120_000;

/** Aborts an attempt when the client leaves, when the head does not come in time, or the first content of a stream. */
class Patience {
  readonly #abort = new AbortController();
  readonly #head: NodeJS.Timeout;
  readonly #content: NodeJS.Timeout | undefined;
  readonly #left: AbortSignal;
  isOver = false;

  constructor({ timeouts }: Upstream, isStream: boolean, left: AbortSignal) {
    this.#left = left;
    left.addEventListener('abort', this.#leave);
    if (left.aborted) this.#leave();
    this.#head = setTimeout(this.#end, Math.min(timeouts.connectMs + timeouts.headersMs, LONGEST_WAIT_FOR_HEAD_MS));
    if (isStream && timeouts.firstTokenMs !== undefined) this.#content = setTimeout(this.#end, timeouts.firstTokenMs);
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  headArrived(): void {
    clearTimeout(this.#head);
  }

  stop(): void {
    clearTimeout(this.#head);
    clearTimeout(this.#content);
    this.#left.removeEventListener('abort', this.#leave);
  }

  readonly #leave = (): void => this.#abort.abort(this.#left.reason);

  readonly #end = (): void => {
    this.isOver = true;
    this.#abort.abort(new Error('the upstream did not answer in time'));
  };
}
