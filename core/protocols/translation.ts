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

/** The properties of the answering candidate that the translation needs. */
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
  /** The estimate of the input; absent: there is none. */
  readonly inputTokens?: number;
}

/** An event of the upstream: its meaning for routing and money, and the events that the client gets for it. */
export interface TranslatedEvent {
  readonly note: EventNote;
  readonly written: readonly ClientEvent[];
}

interface TranslatedBody extends BodyNote {
  /** The body for the client. */
  readonly written: JsonObject;
}

/**
 * Translates the answer of one attempt into the client's dialect. Where the upstream speaks that dialect, it makes a stream of a body
 * and a body of a stream.
 */
export class Translation {
  readonly #candidate: Answering;
  readonly #call: TranslatedFor;
  readonly #reader: AnswerReader;
  readonly #texts: TextTools;
  readonly #guard: ReturnType<typeof guardOf>;
  #opened: AnswerWriter | undefined;
  /** The upstream's own id of the answer. */
  #id: string | undefined;
  /** The choices that have a stop reason. */
  readonly #finished = new Set<number>();
  /** The parts that the client's dialect has no place for. */
  readonly #others = new Set<number>();
  #hasContent = false;
  /** Whether the final usage of a whole answer has come. */
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
      // Only the upstream whose dialect is the client's knows its answers by their ids.
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

  /** Ends a stream whose upstream sends content where the answer is complete. The client must not take it for whole. */
  #late(): TranslatedEvent {
    this.#hasEnded = true;
    return { note: { error: { body: { error: LATE } } }, written: this.#writer.write({ is: 'error', error: LATE }) };
  }

  /**
   * Ends the stream and returns the client's last events. After a fault they do not come from the reader, because it and the
   * writer may disagree about open parts.
   */
  end(): readonly ClientEvent[] {
    if (this.#hasEnded) return [];
    return this.#guard('end', () => this.#write(this.#checked([...(this.#hasFailed ? [] : this.#reader.end()), END])));
  }

  /** Returns the meaning of an unstreamed answer, and the body for the client. */
  body(body: unknown): TranslatedBody {
    return this.#guard('body', () => this.#bodyOf(this.#checked(this.#reader.body(body)), body));
  }

  /** Returns an unstreamed answer as a stream, for a client that asked for one. @throws if it is no answer of its dialect */
  streamed(body: unknown): TranslatedEvent {
    const answerEvents = this.#checked(this.#reader.body(body));
    const note = noteOf(answerEvents, () => body);
    return { note, written: note.error === undefined ? this.#write(answerEvents) : [] };
  }

  /** Returns a stream as a body, for a client that did not ask for one. @throws if it is not whole, or no answer of its dialect */
  gathered(events: readonly SseEvent[]): TranslatedBody {
    const answerEvents: AnswerEvent[] = [];
    for (const event of events) {
      append(answerEvents, this.#checked(this.#reader.event(event)));
      if (answerEvents.at(-1)?.is === 'error') return this.#bodyOf(answerEvents, parseJson(event.data ?? ''));
    }
    append(answerEvents, this.#reader.end());
    if (!this.#isFinished && !answerEvents.some(({ is }) => is === 'end')) throw new Error('the stream is not whole');
    return this.#bodyOf(answerEvents, undefined);
  }

  #bodyOf(answerEvents: readonly AnswerEvent[], body: unknown): TranslatedBody {
    const note = bodyNoteOf(answerEvents, body);
    return { ...note, written: note.error === undefined ? this.#writer.body(this.#forWriter(answerEvents)) : {} };
  }

  /**
   * Returns the upstream's own error in the client's form. `body` is parsed JSON, or text. An error may come with a status of
   * success, for which the client would take it for an answer.
   */
  error(body: unknown, given: number): { readonly status: number; readonly body: JsonObject } {
    const { protocol, requestId } = this.#call;
    const error = this.#candidate.adapter.own?.readError?.(body) ?? readUsualError(body);
    const status = isTooLong(error) ? 400 : Math.max(given, 400);
    return { status, body: clientDialect(protocol).writeError(error, status, requestId) };
  }

  /** Whether the answer is whole. An error of the upstream must then not keep its end from the client. */
  get #isFinished(): boolean {
    return this.#finished.size >= this.#call.asked.conversation.choices;
  }

  /** Makes an error of an end that says nothing good, and gives an answer that ends without a stop reason one. */
  #checked(read: readonly AnswerEvent[]): readonly AnswerEvent[] {
    // It runs for every event of every translated stream, and most only add text and counts.
    if (read.every(isPlain)) {
      this.#hasContent ||= read.some(({ is }) => is === 'add');
      return read;
    }
    const answerEvents: AnswerEvent[] = [];
    let hasFinalUsage = false;
    for (const event of read) {
      if (event.is === 'add' || (event.is === 'open' && event.part.is === 'tool_call')) this.#hasContent = true;
      if (event.is === 'begin') this.#id ??= event.id;
      if (event.is === 'usage') hasFinalUsage ||= event.isFinal === true;
      if (event.is === 'end' && this.#finished.size === 0) {
        if (!this.#hasContent) return brokenOff(answerEvents, read, 'no content');
        answerEvents.push(MISSING_FINISH);
      }
      if (event.is !== 'finish') answerEvents.push(event);
      else if (event.reason === 'broken' || (event.reason === 'unknown' && !this.#hasContent))
        return brokenOff(answerEvents, read, event.stop);
      else {
        this.#finished.add(event.choice);
        answerEvents.push(event.reason === 'unknown' ? { is: 'finish', choice: event.choice, reason: 'end' } : event);
      }
    }
    this.#isPaid ||= hasFinalUsage && this.#isFinished;
    return answerEvents;
  }

  #write(answerEvents: readonly AnswerEvent[]): readonly ClientEvent[] {
    const written: ClientEvent[] = [];
    for (const event of this.#forWriter(answerEvents)) {
      if (this.#hasEnded) break;
      this.#hasEnded = event.is === 'end';
      append(written, this.#writer.write(event));
    }
    return written;
  }

  /** Leaves out the parts that the client's dialect has no place for. */
  #forWriter(answerEvents: readonly AnswerEvent[]): readonly AnswerEvent[] {
    for (const event of answerEvents) if (event.is === 'open' && event.part.is === 'other') this.#others.add(event.at);
    const known =
      this.#others.size === 0
        ? answerEvents
        : answerEvents.filter((event) => !('at' in event && this.#others.has(event.at)));
    return this.#texts.unwrapped(known);
  }
}

const NOTHING: TranslatedEvent = { note: {}, written: [] };

/** Whether an answer event begins and ends nothing. */
function isPlain(event: AnswerEvent): boolean {
  return event.is === 'add' || (event.is === 'usage' && event.isFinal !== true);
}

const MISSING_FINISH: AnswerEvent = { is: 'finish', choice: 0, reason: 'end' };
const END: AnswerEvent = { is: 'end' };
const LATE: AnswerError = { message: 'The upstream sent content behind the end of its answer.' };

/** Ends an answer by an error where `said` breaks off. What it has used stays known. */
function brokenOff(
  answerEvents: readonly AnswerEvent[],
  read: readonly AnswerEvent[],
  word = '',
): readonly AnswerEvent[] {
  const used = read.filter((event) => event.is === 'usage' && !answerEvents.includes(event));
  const error = { message: `The upstream broke off its answer: ${word}`, code: word };
  return [...answerEvents, ...used, { is: 'error', error }];
}

function ownReader({ adapter }: Answering, { asked }: TranslatedFor): AnswerReader {
  if (adapter.own === undefined) throw new Error(`the adapter "${adapter.name}" has no dialect of its own`);
  return adapter.own.answer(asked);
}
