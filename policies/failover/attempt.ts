import type { Readable } from 'node:stream';
import { applyEdits } from '../../core/body-edits';
import type { Answer, AttemptOutcome, ModelRequest, UpstreamHeaders } from '../../core/call';
import type { Candidate } from '../../core/catalog';
import { ChunkReader } from '../../core/chunk-reader';
import { classifyDialFailure, type Egress } from '../../core/egress';
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
  const silence = new SilenceLimit(request.stream ? candidate.upstream.timeouts.firstTokenMs : undefined, limits.left);
  try {
    const response = await send(candidate, request, egress, silence.signal);
    const chunks = new ChunkReader(response.body, response.headers['content-encoding']);
    const head = { candidate, status: response.statusCode, headers: response.headers };
    if (response.statusCode >= 400) return await judge(head, request, chunks);
    if (response.statusCode >= 300) return { answer: { ...head, kind: 'relay', head: [], chunks } };
    if (isEventStream(response.headers)) return await untilContent(head, request, chunks, limits);
    return { answer: { ...head, kind: 'body', bytes: await readAll(chunks) } };
  } catch (error) {
    return {
      failure: {
        outcome: outcomeOf(error, silence, limits.left),
        status: undefined,
        verdict: 'next',
        retryAfterMs: undefined,
      },
      relay: undefined,
    };
  } finally {
    silence.end();
  }
}

type Head = Pick<Answer, 'candidate' | 'status' | 'headers'>;

interface UpstreamResponse {
  readonly statusCode: number;
  readonly headers: UpstreamHeaders;
  readonly body: Readable;
}

function send(
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
  const body = applyEdits(request.body, wanted.edits);
  return egress.pool(upstream).request({
    method: 'POST',
    path: basePath(upstream.url) + wanted.path,
    headers: headersOf(candidate, request, wanted, body.byteLength),
    body: body.byteLength <= ONE_BUFFER_BYTES ? Buffer.concat(body.chunks, body.byteLength) : body.chunks,
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
  silence: SilenceLimit,
  left: AbortSignal,
): Exclude<AttemptOutcome, 'answered' | 'relayed'> {
  if (left.aborted) return 'cancelled';
  if (silence.isOver) return 'timeout';
  return classifyDialFailure(error);
}

/** Aborts when the client leaves, or when the first content does not come in time. */
class SilenceLimit {
  readonly signal: AbortSignal;
  readonly #timer: NodeJS.Timeout | undefined;
  isOver = false;

  constructor(limitMs: number | undefined, left: AbortSignal) {
    if (limitMs === undefined) {
      this.signal = left;
      return;
    }
    const over = new AbortController();
    this.signal = AbortSignal.any([left, over.signal]);
    this.#timer = setTimeout(() => {
      this.isOver = true;
      over.abort(new Error(`no content within ${limitMs} ms`));
    }, limitMs);
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}
