import { append } from '../../core/base/collections';
import { andThen, type MaybeLater } from '../../core/base/maybe-later';
import { parseJson } from '../../core/base/parse-json';
import type { Answer, ModelRequest, UpstreamHeaders } from '../../core/calls/call';
import { estimatedInput } from '../../core/calls/candidates';
import { type AttemptTrace, type MadeAttempt, upstreamRequestId } from '../../core/calls/made-attempt';
import type { NewIds } from '../../core/calls/new-ids';
import type { Candidate, Upstream } from '../../core/catalog/catalog';
import { NotTranslatable } from '../../core/catalog/conversation';
import { AdapterFault } from '../../core/catalog/guarded-adapter';
import { hasOutput } from '../../core/catalog/protocols';
import type { Verdict } from '../../core/catalog/upstream';
import type { Usage } from '../../core/catalog/usage';
import { type AnswerRoom, type BodyRoom, ReadAhead } from '../../core/http/buffered-bytes';
import { CLIENT_LEFT_STATUS } from '../../core/http/client-left';
import { jsonOf } from '../../core/http/raw-json';
import { NoteReader, usageIn } from '../../core/protocols/notes';
import { Translation } from '../../core/protocols/translation';
import type { TraceHeaders } from '../../core/traces/tracing';
import type { UpstreamCall } from '../../core/wire/ask-upstream';
import { BodyTooLong, type ChunkReader, NO_CHUNKS } from '../../core/wire/chunk-reader';
import type { AttemptOutcome } from '../../core/wire/dial-failure';
import { classifyDialFailure, type Egress, nothingWasSent } from '../../core/wire/egress';
import { EventReader, type NotedEvent } from '../../core/wire/event-reader';
import { decodedChunks } from '../../core/wire/exchange';
import { unframed } from '../../core/wire/framed-chunks';
import { isAnswer, readAnswer, type WholeAnswer } from '../../core/wire/read-answer';
import { type PreparedTranslation, translateRequest } from '../../core/wire/translated-call';
import { type ExchangeHead, retryAfterMs, type UpstreamExchange } from '../../core/wire/upstream-exchange';
import type { JudgedFailure } from './decide';
import { readEvents, sameProtocol } from './other-form';
import { AttemptDeadlines, type AttemptingCall, send } from './send';

/** The result of one attempt at one candidate. The gateway can still relay a failed answer to the client. */
export type Attempted =
  | { readonly answer: Answer }
  | {
      readonly failure: JudgedFailure;
      readonly relay: (Answer & { readonly kind: 'relay' }) | undefined;
      /** The headers of the answer; undefined if the upstream did not answer. */
      readonly headers?: UpstreamHeaders;
      /** The usage that the upstream reported before it failed. */
      readonly usage?: Usage | undefined;
    };

const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
const MAX_JUDGED_BYTES = 64 * 1024;
/** How many bytes of a preamble (stream events before any content) are held at most. Above this, or after `preambleHold`, it is sent. */
const MAX_HELD_BYTES = 256 * 1024;
/** How long an attempt reads the body of an error, in milliseconds. Then the status alone decides, so that another candidate can answer. */
const JUDGED_WITHIN_MS = 2_000;

/** The call in the candidate's dialect; undefined if the client uses that dialect; an error if the call cannot be translated. */
export type Translated = PreparedTranslation | Error | undefined;

/** Returns the call in the candidate's dialect. */
export function translate(candidate: Candidate, request: ModelRequest, room?: BodyRoom): MaybeLater<Translated> {
  if (candidate.dialect === undefined) return undefined;
  return translateRequest(candidate, request, room).catch((error: unknown) =>
    error instanceof Error ? error : new Error(String(error)),
  );
}

/** What an attempt needs besides its candidate and its call. */
export interface AttemptInput {
  readonly egress: Egress;
  readonly trace: AttemptTrace | undefined;
  readonly preambleHoldMs: number;
  readonly translated: Translated;
  readonly thinkingMs?: number | undefined;
}

/** Calls one candidate and waits for the first content, the whole body, or a failure. For an unstreamed answer it creates no promise. */
export function attempt(
  candidate: Candidate,
  request: ModelRequest,
  call: AttemptingCall,
  input: AttemptInput,
  done: (attempted: Attempted) => void,
): void {
  const { translated, trace } = input;
  const patience = new AttemptDeadlines(candidate.upstream, request.stream, call, input.thinkingMs);
  const sentAtMs = performance.now();
  const written = translated instanceof Error ? undefined : translated;
  let under: UpstreamExchange | undefined;
  const end = (attempted: Attempted): void => {
    patience.stop();
    done(attempted);
  };
  const failed = (error: unknown): void => {
    under?.cancel();
    end(failureOf(error, candidate, request, patience, sentAtMs));
  };
  const answered = (exchange: UpstreamExchange, sent: ExchangeHead): void => {
    under = exchange;
    try {
      const { head, chunks } = unframed(candidate.adapter, { head: sent, chunks: decodedChunks(exchange, sent) });
      const translation = written && openTranslation(candidate, request, written, call);
      const answer = { candidate, status: head.status, headers: head.headers, translation };
      readAttempt(answer, request, call, { exchange, chunks, input }, end, failed);
    } catch (error) {
      failed(error);
    }
  };
  if (translated instanceof Error) return void failed(translated);
  const asked = withTrace(translated?.call ?? request, candidate.upstream, trace?.headers ?? call.traceHeaders);
  send({ candidate, asked, egress: input.egress, patience, socket: call.upstreamSocket }, answered, failed);
}

/** Reads an answer until the result of the attempt is known. */
function readAttempt(
  head: Head,
  request: ModelRequest,
  call: AttemptingCall,
  { exchange, chunks, input }: { exchange: UpstreamExchange; chunks: ChunkReader; input: AttemptInput },
  end: (attempted: Attempted) => void,
  failed: (error: unknown) => void,
): void {
  const { candidate, status, headers, translation } = head;
  if (status >= 400) return void judge(head, request, chunks).then(end, failed);
  if (status >= 300) return void end({ answer: { candidate, status, headers, kind: 'relay', head: [], chunks } });
  if (isEventStream(headers)) {
    if (!request.stream) return void inOneBody(head, request, chunks, call).then(end, failed);
    if (call.key !== undefined) exchange.ahead = new ReadAhead(call.key.accountId);
    return void untilContent(head, request, chunks, call, input.preambleHoldMs).then(end, failed);
  }
  const { room } = call;
  room?.giveBack();
  const isTranslated = translation !== undefined;
  const needsContent = isTranslated || room === undefined || request.stream;
  const reading = { maxBytes: MAX_ANSWER_BYTES, room, needsContent, keepsInputs: isTranslated };
  const read = (whole: WholeAnswer): void => {
    try {
      if (request.stream && isAnswer(whole.body)) return void end(inEvents(head, request, whole, call));
      const attempted = judgeBody(head, request, whole, chunks, call.newIds, input.trace);
      if (!('answer' in attempted)) return void end(attempted);
      const roomy = withRoom(attempted, room);
      if (roomy instanceof Promise) roomy.then(end, failed);
      else end(roomy);
    } catch (error) {
      failed(error);
    }
  };
  readAnswer(chunks, reading, read, failed);
}

/** Converts the error that ended an attempt to the attempt's result. */
function failureOf(
  error: unknown,
  candidate: Candidate,
  request: ModelRequest,
  patience: AttemptDeadlines,
  sentAtMs: number,
): Attempted {
  if (patience.isAbandoned)
    return { answer: { candidate, status: CLIENT_LEFT_STATUS, headers: {}, kind: 'abandoned', sentAtMs } };
  if (error instanceof NotTranslatable) return { failure: notTranslatable(error), relay: undefined };
  const outcome = outcomeOf(error, patience);
  const verdict = error instanceof BodyTooLong && isAskedFor(request) ? 'relay' : 'next';
  const isDial = !patience.isOver && nothingWasSent(error);
  const stillWorks = patience.hasThought && candidate.upstream.stopsOnCancel !== true;
  return {
    failure: { outcome, status: undefined, verdict, retryAfterMs: undefined, isDial, stillWorks },
    relay: undefined,
  };
}

/** Returns the call with the headers that tell the upstream the trace of the call. */
function withTrace(asked: UpstreamCall, { traceContext }: Upstream, trace: TraceHeaders | undefined): UpstreamCall {
  if (trace === undefined || traceContext === false) return asked;
  // The code avoids an object spread, because a spread that adds members takes ten times as long as `Object.assign` in Node 20.
  return Object.assign({}, asked, { headers: Object.assign({}, asked.headers, trace) });
}

/** Returns whether the call has a list of inputs, which explains a long answer. Then no upstream is at fault, because each would answer at that length. */
function isAskedFor({ inputs }: ModelRequest): boolean {
  return inputs !== undefined;
}

type Head = Pick<Answer, 'candidate' | 'status' | 'headers'> & {
  /** The translation of the answer; undefined if the upstream speaks the client's dialect. */
  readonly translation: Translation | undefined;
};

function openTranslation(
  candidate: Candidate,
  called: ModelRequest,
  { asked, request }: PreparedTranslation,
  { id = MIRROR_REQUEST_ID }: AttemptingCall,
): Translation {
  const inputTokens = estimatedInput(called, candidate.model);
  return new Translation(candidate, { requestId: id, protocol: called.protocol, asked, request, inputTokens });
}

/** Converts an unstreamed answer to a stream, for a call that requested a stream. If that is impossible, the attempt has failed. */
function inEvents(head: Head, request: ModelRequest, { body, isPart }: WholeAnswer, call: AttemptingCall): Attempted {
  const { candidate, status, translation } = head;
  const made = isPart ? undefined : formOf(head, request, call)?.streamed(body);
  if (made === undefined) return failed('status', head, 'next', undefined);
  const { error, usage } = made.note;
  if (error !== undefined) return refused(head, request, error.body, [bytesOf(error.body)], NO_CHUNKS, usage);
  if (translation === undefined) call.newIds?.noteBody(candidate, body);
  const events = new EventReader(request.protocol, request.choices);
  const headers = { ...head.headers, 'content-type': 'text/event-stream' };
  const stream = { head: events.translated(made), events, chunks: NO_CHUNKS, headAtMs: performance.now() };
  return { answer: { candidate, status, headers, kind: 'stream', ...stream } };
}

/** Converts a stream to a body, for a call that requested an unstreamed answer. If that is impossible, the attempt has failed. */
async function inOneBody(
  head: Head,
  request: ModelRequest,
  chunks: ChunkReader,
  call: AttemptingCall,
): Promise<Attempted> {
  const { candidate, status, translation } = head;
  const form = formOf(head, request, call);
  if (form === undefined) return failed('status', head, 'next', undefined);
  const events = await readEvents(chunks);
  const { error, usage, contentBytes, written } = form.gathered(events);
  if (error !== undefined) return refused(head, request, error.body, [bytesOf(error.body)], NO_CHUNKS, usage);
  if (translation === undefined) for (const event of events) call.newIds?.noteEvent(candidate, event);
  const headers = { ...head.headers, 'content-type': 'application/json' };
  const bytes = bytesOf(written);
  return withRoom({ answer: { candidate, status, headers, kind: 'body', bytes, usage, contentBytes } }, call.room);
}

function formOf({ candidate, translation }: Head, request: ModelRequest, { id = MIRROR_REQUEST_ID }: AttemptingCall) {
  return translation ?? sameProtocol(candidate, request, id);
}

/** Lets the adapter interpret an error. `read`: the part of the error's body that has arrived; undefined if the gateway had no memory for it. */
function refused(
  head: Head,
  { protocol }: ModelRequest,
  body: unknown,
  read: readonly Buffer[] | undefined,
  chunks: ChunkReader,
  usage?: Usage,
): Attempted {
  const { candidate, status, headers } = head;
  const verdict = candidate.adapter.judge({ protocol, status, headers, body });
  const relay = read && errorOf(head, body ?? Buffer.concat(read).toString('utf8'), read, chunks);
  return failed('status', head, verdict, relay, usage);
}

/** The request id of a mirrored call. No client reads its answer. */
const MIRROR_REQUEST_ID = 'mirror';

export function notTranslatable({ what, message }: NotTranslatable): JudgedFailure {
  const refusal = { param: what, message };
  return { outcome: 'not_translatable', status: undefined, verdict: 'next', retryAfterMs: undefined, refusal };
}

function isEventStream(headers: UpstreamHeaders): boolean {
  return String(headers['content-type'] ?? '')
    .toLowerCase()
    .startsWith('text/event-stream');
}

/** Reads an answer with an error status and lets the adapter interpret it. */
async function judge(head: Head, request: ModelRequest, chunks: ChunkReader): Promise<Attempted> {
  const { read, isAll } = await readRefusal(chunks);
  const body = isAll ? parseJson(Buffer.concat(read).toString('utf8')) : undefined;
  return refused(head, request, body, read, chunks);
}

/** Reads the start of the error: what arrives within JUDGED_WITHIN_MS, up to about MAX_JUDGED_BYTES. */
async function readRefusal(
  chunks: ChunkReader,
): Promise<{ readonly read: readonly Buffer[]; readonly isAll: boolean }> {
  const read: Buffer[] = [];
  let byteLength = 0;
  const timer = startTimer(JUDGED_WITHIN_MS);
  try {
    while (byteLength <= MAX_JUDGED_BYTES && (await Promise.race([chunks.ready(), timer.isOver])) !== 'over') {
      const chunk = chunks.take();
      if (chunk === undefined) return { read, isAll: true };
      read.push(chunk);
      byteLength += chunk.length;
    }
    return { read, isAll: false };
  } finally {
    timer.stop();
  }
}

/** Reads an unstreamed answer with a success status. It may still contain an error. */
function judgeBody(
  head: Head,
  request: ModelRequest,
  { bytes, byteLength, isPart, body: json }: WholeAnswer,
  chunks: ChunkReader,
  newIds: NewIds | undefined,
  trace: AttemptTrace | undefined,
): Attempted {
  let body = json;
  let usage: Usage | undefined;
  const { candidate, status, headers, translation } = head;
  if (isAnswer(body)) {
    // The adapter reads the answer here and not when the call is charged, because another candidate can still answer if the adapter fails.
    const read =
      translation?.body(body) ?? new NoteReader(request.protocol, candidate.upstream.adapterSettings).body(body);
    if (read.error === undefined) {
      // The gateway did not read the text of a large answer. If the upstream's token counts are unusable, the length of the answer counts as its
      // output.
      const isUnread = isPart && read.contentBytes === 0 && hasOutput(request.protocol);
      const contentBytes = isUnread ? byteLength : read.contentBytes;
      if (translation === undefined) newIds?.noteBody(candidate, body);
      trace?.noteBody('written' in read ? read.written : body);
      const given = bytes && 'written' in read ? bytesOf(read.written) : bytes;
      return { answer: { candidate, status, headers, kind: 'body', bytes: given, usage: read.usage, contentBytes } };
    }
    body = read.error.body;
    usage = read.usage;
  }
  return refused(head, request, body, bytes && [bytes], chunks, usage);
}

/** Returns the answer, or the answer without its bytes if there is no memory for them. A translated answer may be longer than the upstream's bytes. */
function withRoom(
  attempted: { readonly answer: Answer },
  room: AnswerRoom | undefined,
): MaybeLater<{ readonly answer: Answer }> {
  const { answer } = attempted;
  if (answer.kind !== 'body' || answer.bytes === undefined || room === undefined) return attempted;
  return andThen(room.arrive(answer.bytes.length), (hasRoom) =>
    hasRoom ? attempted : { answer: { ...answer, bytes: undefined } },
  );
}

/** Returns an answer for the client: the bytes read so far, and all bytes that follow in the client's own dialect. */
function relayOf(
  { translation, ...head }: Head,
  read: readonly Buffer[],
  chunks: ChunkReader,
): Answer & { kind: 'relay' } {
  if (translation === undefined) return { ...head, kind: 'relay', head: read, chunks };
  chunks.cancel();
  return { ...head, kind: 'relay', head: read, chunks: NO_CHUNKS };
}

/** Returns an upstream's error for the client, in the client's dialect. */
function errorOf(head: Head, body: unknown, read: readonly Buffer[], chunks: ChunkReader): Answer & { kind: 'relay' } {
  const { translation } = head;
  if (translation === undefined) return relayOf(head, read, chunks);
  const { status, body: said } = translation.error(body, head.status);
  const headers = { ...head.headers, 'content-type': 'application/json' };
  return relayOf({ ...head, status, headers }, [bytesOf(said)], chunks);
}

function bytesOf(value: unknown): Buffer {
  return Buffer.from(jsonOf(value));
}

function failed(
  outcome: JudgedFailure['outcome'],
  head: Head,
  verdict: Verdict,
  relay: (Answer & { kind: 'relay' }) | undefined,
  usage?: Usage,
): Attempted {
  const failure = { outcome, status: head.status, verdict, retryAfterMs: retryAfterMs(head.headers) };
  return { failure, relay, headers: head.headers, usage };
}

/**
 * Holds the preamble of a stream back until its first content, so that another upstream can still answer. If the client disconnects, the
 * gateway stops holding it and only counts the rest of the stream.
 */
async function untilContent(
  head: Head,
  request: ModelRequest,
  chunks: ChunkReader,
  call: AttemptingCall,
  preambleHoldMs: number,
): Promise<Attempted> {
  const { candidate, status, headers, translation } = head;
  const { newIds } = call;
  const events = new EventReader(
    request.protocol,
    request.choices,
    newIds && ((event) => newIds.noteEvent(candidate, event)),
    translation,
    candidate.upstream.adapterSettings,
  );
  const held: NotedEvent[] = [];
  let heldBytes = 0;
  const headAtMs = performance.now();
  const answer = (): Attempted => ({
    answer: { candidate, status, headers, kind: 'stream', head: held, events, chunks, headAtMs },
  });
  const timer = startTimer(preambleHoldMs);
  const stopListening = call.onLeave(timer.end);
  try {
    for (;;) {
      if ((await Promise.race([chunks.ready(), timer.isOver])) === 'over') return answer();
      const chunk = chunks.take();
      if (chunk === undefined) return events.isWhole ? answer() : lost(head, held, chunks);
      heldBytes += chunk.length;
      let releases = false;
      const read = events.read(chunk);
      for (const [index, event] of read.entries()) {
        const { note } = event;
        held.push(event);
        if (releases) continue;
        if (note.malformed === true) return lost(head, held, chunks);
        if (note.error !== undefined) {
          const failure = { protocol: request.protocol, status, headers, body: note.error.body };
          append(held, read.slice(index + 1));
          const rest = translation === undefined ? events.rest() : undefined;
          const relay = relayOf(head, rest === undefined ? rawsOf(held) : [...rawsOf(held), rest], chunks);
          return failed('error_event', head, candidate.adapter.judge(failure), relay, usageOfEvents(held));
        }
        releases = note.content === true || note.finish === true || note.finalUsage === true || note.done === true;
      }
      if (releases || heldBytes > MAX_HELD_BYTES) return answer();
    }
  } catch (error) {
    chunks.cancel();
    throw error;
  } finally {
    timer.stop();
    stopListening();
  }
}

/** Returns a timer that can be raced against other promises. */
function startTimer(ms: number): { readonly isOver: Promise<'over'>; end(): void; stop(): void } {
  let timer: NodeJS.Timeout | undefined;
  let end = (): void => undefined;
  const isOver = new Promise<'over'>((resolve) => {
    end = () => resolve('over');
    timer = setTimeout(end, ms);
  });
  return { isOver, end, stop: () => clearTimeout(timer) };
}

function rawsOf(events: readonly NotedEvent[]): Buffer[] {
  return events.map(({ raw }) => raw);
}

function usageOfEvents(events: readonly NotedEvent[]): Usage | undefined {
  const usage = usageIn(events.map(({ note }) => note));
  return usage.passes.length === 0 ? undefined : usage;
}

/** Returns the failure of a stream that ended or became malformed before any content. */
function lost(head: Head, held: readonly NotedEvent[], chunks: ChunkReader): Attempted {
  return failed('reset', head, 'next', relayOf(head, rawsOf(held), chunks), usageOfEvents(held));
}

/** Records the result of an attempt. The usage of an answer is known only when the call is settled. */
export function noteMade(making: MadeAttempt, attempted: Attempted, ms: number): void {
  making.ms = ms;
  if ('answer' in attempted) {
    const { kind, status, headers } = attempted.answer;
    if (kind !== 'abandoned') making.outcome = 'answered';
    making.status = status;
    making.upstreamRequestId = upstreamRequestId(headers);
    return;
  }
  const { failure, headers, usage } = attempted;
  making.outcome = failure.outcome;
  making.status = failure.status;
  making.usage = usage;
  if (headers !== undefined) making.upstreamRequestId = upstreamRequestId(headers);
}

function outcomeOf(error: unknown, patience: AttemptDeadlines): AttemptOutcome {
  if (patience.isCancelled) return 'cancelled';
  if (error instanceof AdapterFault) return 'adapter_fault';
  if (patience.isOver) return 'timeout';
  return classifyDialFailure(error);
}
