import { append } from '../append';
import type { AnswerError, AnswerEvent, AnswerReader, AnswerWriter, ClientEvent } from '../catalog/answer';
import type { Candidate } from '../catalog/catalog';
import { guardOf } from '../catalog/guarded-adapter';
import type { Protocol } from '../catalog/protocols';
import { type EventNote, readUsualError, type SseEvent, type TranslatedCall } from '../catalog/upstream';
import { mergeUsage, UNKNOWN_USAGE, type Usage } from '../catalog/usage';
import type { JsonObject } from '../json-values';
import { parseJson } from '../parse-json';
import { clientDialect } from './client-dialects';
import { seal } from './seal';
import { TextTools } from './text-tools';

/** The properties of the answering candidate that the translation needs. */
export type Answering = Pick<Candidate, 'adapter' | 'dialect'> & {
  readonly model: Pick<Candidate['model'], 'name'>;
  readonly upstream: Pick<Candidate['upstream'], 'name'>;
};

/** The call whose answer is translated. */
interface TranslatedFor {
  readonly requestId: string;
  readonly protocol: Protocol;
  readonly asked: TranslatedCall;
  /** The client's request, parsed. */
  readonly request: JsonObject;
}

/** An event of the upstream: its meaning for routing and money, and the events that the client gets for it. */
interface TranslatedEvent {
  readonly note: EventNote;
  readonly written: readonly ClientEvent[];
}

interface TranslatedBody {
  readonly usage: Usage;
  readonly contentBytes: number;
  /** The error in a body whose status is a success. */
  readonly error?: { readonly body: unknown };
  /** The body for the client. */
  readonly written: JsonObject;
}

/**
 * Translates the answer of one attempt into the client's dialect. If the upstream speaks a protocol of clients, its adapter
 * counts as for native calls, so that the bill is the same.
 */
export class Translation {
  readonly #candidate: Answering;
  readonly #call: TranslatedFor;
  readonly #reader: AnswerReader;
  readonly #texts: TextTools;
  readonly #guard: ReturnType<typeof guardOf>;
  readonly #writer: AnswerWriter;
  /** The choices that have a stop reason. */
  readonly #finished = new Set<number>();
  #hasEnded = false;
  /** Whether an event made the reader or the writer throw. */
  #hasFailed = false;

  constructor(candidate: Answering, call: TranslatedFor) {
    const { adapter, dialect, model, upstream } = candidate;
    this.#candidate = candidate;
    this.#call = call;
    this.#reader =
      dialect === undefined || dialect === 'own' ? ownReader(candidate, call) : clientDialect(dialect).openReader();
    this.#guard = guardOf(adapter.own === undefined ? `dialect ${dialect}` : adapter.name);
    this.#texts = new TextTools(call.asked.conversation);
    this.#writer = clientDialect(call.protocol).openWriter({
      requestId: call.requestId,
      model: model.name,
      createdAt: Math.floor(Date.now() / 1_000),
      request: call.request,
      seal: (value) => seal({ upstream: upstream.name, dialect: adapter.own?.dialect ?? String(dialect), value }),
    });
  }

  event(event: SseEvent): TranslatedEvent {
    try {
      return this.#guard('event', () => this.#event(event));
    } catch (error) {
      this.#hasFailed = true;
      throw error;
    }
  }

  #event(event: SseEvent): TranslatedEvent {
    const { adapter } = this.#candidate;
    if (adapter.own !== undefined) {
      if (this.#hasEnded) return NOTHING;
      const said = this.#texts.unwrapped(this.#reader.event(event));
      const note = withBody(noteOf(said), event);
      if (note.error !== undefined && this.#isFinished) return NOTHING;
      const written = this.#write(said);
      if (note.done === true && this.#finished.size === 0) throw new Error('the answer ends without a stop reason');
      return { note, written };
    }
    const note = adapter.readEvent(event);
    if ((note.error ?? note.malformed) !== undefined && this.#isFinished) return NOTHING;
    if (note.error !== undefined)
      return { note, written: this.#write([{ is: 'error', error: this.#errorOf(note.error.body) }]) };
    if (note.malformed === true) return { note, written: [] };
    return { note, written: this.#write(withUsage(note.usage, this.#texts.unwrapped(this.#reader.event(event)))) };
  }

  /**
   * Ends the stream and returns the client's last events. After a fault they do not come from the reader, because it and the
   * writer may disagree about open parts.
   */
  end(): readonly ClientEvent[] {
    if (this.#hasEnded) return [];
    return this.#guard('end', () => {
      const last = this.#hasFailed ? [] : this.#texts.unwrapped(this.#reader.end());
      return this.#write([...last, END]);
    });
  }

  /** Returns the meaning of an unstreamed answer, and the body for the client. */
  body(body: unknown): TranslatedBody {
    return this.#guard('body', () => this.#body(body));
  }

  #body(body: unknown): TranslatedBody {
    const { adapter } = this.#candidate;
    if (adapter.own === undefined) {
      const read = adapter.readBody(body);
      if (read.error !== undefined) return { ...read, written: {} };
      const said = withUsage(read.usage, this.#texts.unwrapped(this.#reader.body(body)));
      return { ...read, written: this.#writer.body(said) };
    }
    const said = this.#texts.unwrapped(this.#reader.body(body));
    let usage = UNKNOWN_USAGE;
    let contentBytes = 0;
    for (const event of said) {
      if (event.is === 'usage') usage = mergeUsage(usage, event.usage);
      if (event.is === 'add') contentBytes += Buffer.byteLength(event.text);
      if (event.is === 'error') return { usage, contentBytes: 0, error: { body }, written: {} };
    }
    return { usage, contentBytes, written: this.#writer.body(said) };
  }

  /** Returns the upstream's own error in the client's form. `body` is parsed JSON, or text. */
  error(body: unknown, status: number): JsonObject {
    const { protocol, requestId } = this.#call;
    return clientDialect(protocol).writeError(this.#errorOf(body), status, requestId);
  }

  #errorOf(body: unknown): AnswerError {
    return this.#candidate.adapter.own?.readError?.(body) ?? readUsualError(body);
  }

  /** Whether the answer is whole and paid. A fault after the stop reasons must then not keep its end from the client. */
  get #isFinished(): boolean {
    return this.#finished.size >= this.#call.asked.conversation.choices;
  }

  #write(said: readonly AnswerEvent[]): readonly ClientEvent[] {
    const written: ClientEvent[] = [];
    for (const event of said) {
      if (this.#hasEnded) break;
      if (event.is === 'finish') this.#finished.add(event.choice);
      if (event.is === 'end') {
        this.#hasEnded = true;
        // The protocol's own end replaces a missing stop reason.
        if (this.#finished.size === 0) append(written, this.#writer.write(UNSAID));
      }
      append(written, this.#writer.write(event));
    }
    return written;
  }
}

const NOTHING: TranslatedEvent = { note: {}, written: [] };
const UNSAID: AnswerEvent = { is: 'finish', choice: 0, reason: 'end' };
const END: AnswerEvent = { is: 'end' };

function ownReader({ adapter }: Answering, { asked }: TranslatedFor): AnswerReader {
  if (adapter.own === undefined) throw new Error(`the adapter "${adapter.name}" has no dialect of its own`);
  return adapter.own.answer(asked);
}

/** Adds the usage that the adapter of the upstream's protocol has read, so that readers of dialects need not read it. */
function withUsage(usage: Usage | undefined, said: readonly AnswerEvent[]): readonly AnswerEvent[] {
  return usage === undefined || usage.passes.length === 0 ? said : [{ is: 'usage', usage }, ...said];
}

/** Adds the whole data of an error event, because the error is judged by it. */
function withBody(note: EventNote, { data }: SseEvent): EventNote {
  const body = note.error === undefined || data === undefined ? undefined : parseJson(data);
  return body === undefined ? note : { ...note, error: { body } };
}

/** Returns the meaning of events that an adapter with a dialect of its own has read. */
function noteOf(said: readonly AnswerEvent[]): EventNote {
  const note: { -readonly [Name in keyof EventNote]: EventNote[Name] } = {};
  const finished: number[] = [];
  for (const event of said) {
    switch (event.is) {
      case 'open':
        if (event.part.is === 'tool_call') note.content = true;
        break;
      case 'add':
        if (event.text === '') break;
        note.content = true;
        note.contentBytes = (note.contentBytes ?? 0) + Buffer.byteLength(event.text);
        break;
      case 'finish':
        note.finish = true;
        finished.push(event.choice);
        break;
      case 'usage':
        note.usage = note.usage === undefined ? event.usage : mergeUsage(note.usage, event.usage);
        break;
      case 'end':
        note.done = true;
        break;
      case 'error':
        note.error = { body: { error: event.error } };
        break;
      default:
    }
  }
  return finished.length === 0 ? note : { ...note, finishedChoices: finished };
}
