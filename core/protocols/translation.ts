import { append } from '../base/collections';
import type { JsonObject } from '../base/json-values';
import { parseJson } from '../base/parse-json';
import type { AnswerError, AnswerEvent, AnswerReader, AnswerWriter, ClientEvent } from '../catalog/answer';
import type { Candidate } from '../catalog/catalog';
import { guardOf } from '../catalog/guarded-adapter';
import type { Protocol } from '../catalog/protocols';
import { type EventNote, readUsualError, type SseEvent, type TranslatedCall } from '../catalog/upstream';
import { clientDialect } from './client-dialects';
import { isTooLong } from './error-words';
import { type BodyNote, bodyNoteOf, dataOf, noteOf, readOrMalformed } from './notes';
import { seal } from './seal';
import { TextTools } from './text-tools';

/** The properties of a candidate (one choice of an upstream for a call) that the translation of its answer needs. */
type Answering = Pick<Candidate, 'adapter' | 'dialect'> & {
  readonly model: Pick<Candidate['model'], 'name'>;
  readonly upstream: Pick<Candidate['upstream'], 'name'> & Partial<Pick<Candidate['upstream'], 'adapterSettings'>>;
};

/** The call whose answer is translated. */
interface TranslatedFor {
  readonly requestId: string;
  readonly protocol: Protocol;
  readonly asked: TranslatedCall;
  /** The client's request, parsed. */
  readonly request: JsonObject;
  /** The estimated input tokens; absent if there is no estimate. */
  readonly inputTokens?: number;
}

/** The result of translating one event of the upstream. `note` is for routing and charging; `written` has the events that the client gets. */
export interface TranslatedEvent {
  readonly note: EventNote;
  readonly written: readonly ClientEvent[];
}

interface TranslatedBody extends BodyNote {
  /** The body for the client. */
  readonly written: JsonObject;
}

/**
 * Translates the answer of one attempt into the client's dialect. If the upstream speaks that dialect, the translation only converts a
 * stream to a body or a body to a stream.
 */
export class Translation {
  readonly #candidate: Answering;
  readonly #call: TranslatedFor;
  readonly #reader: AnswerReader;
  readonly #texts: TextTools;
  readonly #guard: ReturnType<typeof guardOf>;
  #opened: AnswerWriter | undefined;
  /** The id that the upstream gave the answer. */
  #id: string | undefined;
  /** The numbers of the choices that have a stop reason. */
  readonly #finished = new Set<number>();
  /** The numbers of the parts that the client's dialect cannot express. */
  readonly #others = new Set<number>();
  #hasContent = false;
  /** Whether the answer is complete and its final usage has arrived. */
  #isPaid = false;
  #hasEnded = false;
  /** Whether an event made the reader or the writer throw. */
  #hasFailed = false;

  constructor(candidate: Answering, call: TranslatedFor) {
    const { adapter, dialect = call.protocol, upstream } = candidate;
    this.#candidate = candidate;
    this.#call = call;
    this.#reader =
      dialect === 'own' ? ownReader(candidate, call) : clientDialect(dialect).openReader(upstream.adapterSettings);
    this.#guard = guardOf(adapter.own === undefined ? `dialect ${dialect}` : adapter.name);
    this.#texts = new TextTools(call.asked.conversation);
  }

  get #writer(): AnswerWriter {
    if (this.#opened !== undefined) return this.#opened;
    const { requestId, protocol, request, inputTokens } = this.#call;
    const { adapter, dialect, model, upstream } = this.#candidate;
    const spoken = adapter.own?.dialect ?? dialect ?? protocol;
    this.#opened = clientDialect(protocol).openWriter({
      requestId,
      // A later call can use the upstream's id of the answer only if the upstream speaks the client's dialect.
      ...(dialect === undefined && this.#id !== undefined && { id: this.#id }),
      model: model.name,
      createdAt: Math.floor(Date.now() / 1_000),
      request,
      inputTokens,
      seal: (value) => seal({ upstream: upstream.name, dialect: spoken, value }),
    });
    return this.#opened;
  }

  event(event: SseEvent): TranslatedEvent {
    try {
      return this.#guard('event', () => this.#event(event));
    } catch (error) {
      this.#hasFailed = true;
      if (this.#isFinished && !this.#hasEnded) return this.#late();
      throw error;
    }
  }

  #event(event: SseEvent): TranslatedEvent {
    const wasPaid = this.#isPaid;
    const read = readOrMalformed(this.#reader, event);
    if (read === undefined) return this.#isFinished ? NOTHING : { note: { malformed: true }, written: [] };
    const answerEvents = this.#checked(read);
    const note = noteOf(answerEvents, dataOf(event));
    if (note.error !== undefined && this.#isFinished) return NOTHING;
    if (wasPaid && (note.contentBytes ?? 0) > 0 && !this.#hasEnded) return this.#late();
    return { note, written: this.#write(answerEvents) };
  }

  /** Ends a stream with an error, because its upstream sent content after the end of the answer. The client must not accept the answer as complete. */
  #late(): TranslatedEvent {
    this.#hasEnded = true;
    return { note: { error: { body: { error: LATE } } }, written: this.#writer.write({ kind: 'error', error: LATE }) };
  }

  /**
   * Ends the stream and returns the client's last events. After an error of reader or writer the reader adds no events: the two may
   * disagree about open parts.
   */
  end(): readonly ClientEvent[] {
    if (this.#hasEnded) return [];
    return this.#guard('end', () => this.#write(this.#checked([...(this.#hasFailed ? [] : this.#reader.end()), END])));
  }

  /** Returns the usage and errors of an unstreamed answer, for routing and charging, and the body for the client. */
  body(body: unknown): TranslatedBody {
    return this.#guard('body', () => this.#bodyOf(this.#checked(this.#reader.body(body)), body));
  }

  /** Returns an unstreamed answer as a stream, for a client that requested a stream. @throws if `body` is not in the upstream's dialect */
  streamed(body: unknown): TranslatedEvent {
    const answerEvents = this.#checked(this.#reader.body(body));
    const note = noteOf(answerEvents, () => body);
    return { note, written: note.error === undefined ? this.#write(answerEvents) : [] };
  }

  /** Returns a stream as a body, for a client that requested no stream. @throws if it is incomplete, or not in the upstream's dialect */
  gathered(events: readonly SseEvent[]): TranslatedBody {
    const answerEvents: AnswerEvent[] = [];
    for (const event of events) {
      append(answerEvents, this.#checked(this.#reader.event(event)));
      if (answerEvents.at(-1)?.kind === 'error') return this.#bodyOf(answerEvents, parseJson(event.data ?? ''));
    }
    append(answerEvents, this.#reader.end());
    if (!this.#isFinished && !answerEvents.some(({ kind }) => kind === 'end'))
      throw new Error("the upstream's stream is not whole: its final event is missing");
    return this.#bodyOf(answerEvents, undefined);
  }

  #bodyOf(answerEvents: readonly AnswerEvent[], body: unknown): TranslatedBody {
    const note = bodyNoteOf(answerEvents, body);
    return { ...note, written: note.error === undefined ? this.#writer.body(this.#forWriter(answerEvents)) : {} };
  }

  /**
   * Returns the upstream's error in the client's form. `body` is parsed JSON, or text. A status of success becomes 400, because the client
   * would read the error as an answer.
   */
  error(body: unknown, given: number): { readonly status: number; readonly body: JsonObject } {
    const { protocol, requestId } = this.#call;
    const error = this.#candidate.adapter.own?.readError?.(body) ?? readUsualError(body);
    const status = isTooLong(error) ? 400 : Math.max(given, 400);
    return { status, body: clientDialect(protocol).writeError(error, status, requestId) };
  }

  /** Whether every choice has its stop reason. If so, the client gets the end of the answer even if the upstream reports an error later. */
  get #isFinished(): boolean {
    return this.#finished.size >= this.#call.asked.conversation.choices;
  }

  /**
   * Replaces the end of an answer by an error if the upstream broke the answer off or sent no content. Adds a stop reason to an answer that
   * ends without one.
   */
  #checked(read: readonly AnswerEvent[]): readonly AnswerEvent[] {
    // This method runs for every event of every translated stream. Most events only add text and counts, so a quick check handles those first.
    if (read.every(isPlain)) {
      this.#hasContent ||= read.some(({ kind }) => kind === 'add');
      return read;
    }
    const answerEvents: AnswerEvent[] = [];
    let hasFinalUsage = false;
    for (const event of read) {
      if (event.kind === 'add' || (event.kind === 'open' && event.part.kind === 'tool_call')) this.#hasContent = true;
      if (event.kind === 'begin') this.#id ??= event.id;
      if (event.kind === 'usage') hasFinalUsage ||= event.isFinal === true;
      if (event.kind === 'end' && this.#finished.size === 0) {
        if (!this.#hasContent) return brokenOff(answerEvents, read, 'no content');
        answerEvents.push(MISSING_FINISH);
      }
      if (event.kind !== 'finish') answerEvents.push(event);
      else if (event.reason === 'broken' || (event.reason === 'unknown' && !this.#hasContent))
        return brokenOff(answerEvents, read, event.stop);
      else {
        this.#finished.add(event.choice);
        answerEvents.push(event.reason === 'unknown' ? { kind: 'finish', choice: event.choice, reason: 'end' } : event);
      }
    }
    this.#isPaid ||= hasFinalUsage && this.#isFinished;
    return answerEvents;
  }

  #write(answerEvents: readonly AnswerEvent[]): readonly ClientEvent[] {
    const written: ClientEvent[] = [];
    for (const event of this.#forWriter(answerEvents)) {
      if (this.#hasEnded) break;
      this.#hasEnded = event.kind === 'end';
      append(written, this.#writer.write(event));
    }
    return written;
  }

  /** Drops the parts that the client's dialect cannot express. */
  #forWriter(answerEvents: readonly AnswerEvent[]): readonly AnswerEvent[] {
    for (const event of answerEvents)
      if (event.kind === 'open' && event.part.kind === 'other') this.#others.add(event.at);
    const known =
      this.#others.size === 0
        ? answerEvents
        : answerEvents.filter((event) => !('at' in event && this.#others.has(event.at)));
    return this.#texts.unwrapped(known);
  }
}

const NOTHING: TranslatedEvent = { note: {}, written: [] };

/** Returns whether an answer event only adds text or a preliminary usage. */
function isPlain(event: AnswerEvent): boolean {
  return event.kind === 'add' || (event.kind === 'usage' && event.isFinal !== true);
}

const MISSING_FINISH: AnswerEvent = { kind: 'finish', choice: 0, reason: 'end' };
const END: AnswerEvent = { kind: 'end' };
const LATE: AnswerError = { message: 'The upstream sent content after the end of its answer.' };

/** Ends an answer with an error, because the upstream broke it off. Keeps the usage that `read` reports. */
function brokenOff(
  answerEvents: readonly AnswerEvent[],
  read: readonly AnswerEvent[],
  word = '',
): readonly AnswerEvent[] {
  const used = read.filter((event) => event.kind === 'usage' && !answerEvents.includes(event));
  const error = { message: `The upstream broke off its answer: ${word}`, code: word };
  return [...answerEvents, ...used, { kind: 'error', error }];
}

function ownReader({ adapter }: Answering, { asked }: TranslatedFor): AnswerReader {
  if (adapter.own === undefined) throw new Error(`the adapter "${adapter.name}" has no dialect of its own`);
  return adapter.own.answer(asked);
}
