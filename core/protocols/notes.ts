import { parseJson } from '../base/parse-json';
import type { AnswerEvent, AnswerReader } from '../catalog/answer';
import type { Protocol } from '../catalog/protocols';
import type { Deltas, EventNote, SseEvent } from '../catalog/upstream';
import { mergeUsage, UNKNOWN_USAGE, type Usage } from '../catalog/usage';
import { ChatReader } from './chat/answer';
import { EmbeddingsReader } from './embeddings/answer';
import { MalformedEvent } from './event-json';
import { MessagesReader } from './messages/answer';
import { ResponsesReader } from './responses/answer';

interface Native {
  open(adapterSettings?: unknown): AnswerReader;
  /** The members with the text in events that only continue a text. The gateway does not parse such events. If absent, it parses every event. */
  readonly deltas?: Deltas;
  /** The path of the usage report in an event. If absent, the report is the event's top-level member `usage`. */
  readonly usageAt?: readonly string[];
}

const NATIVE: Readonly<Record<Protocol, Native>> = {
  messages: { open: () => new MessagesReader(true), deltas: { texts: ['text', 'thinking', 'data', 'partial_json'] } },
  chat: {
    open: (settings) => new ChatReader(true, settings),
    deltas: {
      texts: ['content', 'refusal', 'reasoning', 'reasoning_content', 'text', 'arguments', 'input'],
      ignored: ['created', 'obfuscation'],
    },
  },
  responses: {
    open: () => new ResponsesReader(true),
    deltas: {
      texts: ['delta', 'text', 'refusal', 'arguments', 'input', 'code'],
      ignored: ['sequence_number', 'obfuscation'],
    },
    usageAt: ['response', 'usage'],
  },
  embeddings: { open: () => new EmbeddingsReader() },
};

/** The token usage, length and error of an unstreamed answer, as routing and charging need them. */
export interface BodyNote {
  readonly usage: Usage;
  readonly contentBytes: number;
  /** The error in a body although its HTTP status reports success. The adapter's function `judge` gets `body`. */
  readonly error?: { readonly body: unknown };
}

/** Reads usage, content and errors of one native answer. It never rejects the answer as contradictory, because the client gets it unchanged. */
export class NoteReader {
  readonly #reader: AnswerReader;
  readonly #native: Native;

  constructor(protocol: Protocol, adapterSettings?: unknown) {
    this.#native = NATIVE[protocol];
    this.#reader = this.#native.open(adapterSettings);
  }

  get deltas(): Deltas | undefined {
    return this.#native.deltas;
  }

  event(event: SseEvent): EventNote {
    const events = readOrMalformed(this.#reader, event);
    return events === undefined ? { malformed: true } : noteOf(events, dataOf(event), this.#native.usageAt);
  }

  body(body: unknown): BodyNote {
    return bodyNoteOf(this.#reader.body(body), body);
  }
}

/** Returns the usage that these notes report together. */
export function usageIn(notes: readonly EventNote[]): Usage {
  return notes.reduce((sum, { usage }) => (usage === undefined ? sum : mergeUsage(sum, usage)), UNKNOWN_USAGE);
}

/** Returns the answer events into which the reader converts one event of a stream; undefined if the event's data is malformed. */
export function readOrMalformed(reader: AnswerReader, event: SseEvent): readonly AnswerEvent[] | undefined {
  try {
    return reader.event(event);
  } catch (error) {
    if (error instanceof MalformedEvent) return undefined;
    throw error;
  }
}

const NOTHING: EventNote = {};

type Changing<T> = { -readonly [Name in keyof T]: T[Name] };

/** Returns a function that parses the data of an event when it is called. */
export function dataOf({ data = '' }: SseEvent): () => unknown {
  return () => parseJson(data);
}

/** Returns the usage, content and errors in answer events, for routing and charging. `whole` returns the JSON that the events were read from. */
export function noteOf(events: readonly AnswerEvent[], whole: () => unknown, usageAt?: readonly string[]): EventNote {
  if (events.length === 0) return NOTHING;
  const [only] = events;
  if (events.length === 1 && only?.kind === 'add' && only.bytes === undefined && only.text !== '')
    return { content: true, contentBytes: Buffer.byteLength(only.text) };
  const note: Changing<EventNote> = {};
  for (const event of events) {
    switch (event.kind) {
      case 'open':
      case 'add':
        noteContent(note, event);
        break;
      case 'sign':
        note.content = true;
        break;
      case 'finish':
        note.finish = true;
        note.finishedChoices = [...(note.finishedChoices ?? []), event.choice];
        break;
      case 'usage':
        note.usage = note.usage === undefined ? event.usage : mergeUsage(note.usage, event.usage);
        if (event.isFinal !== true) break;
        note.finalUsage = true;
        if (usageAt !== undefined) note.usageAt = usageAt;
        break;
      case 'end':
        note.done = true;
        break;
      case 'error':
        note.error = { body: event.body ?? whole() ?? { error: event.error } };
        break;
      default:
    }
  }
  return note;
}

const PROMISES: ReadonlySet<string> = new Set(['tool_call', 'other']);

function noteContent(note: Changing<EventNote>, event: Extract<AnswerEvent, { kind: 'open' | 'add' }>): void {
  const bytes = event.bytes ?? (event.kind === 'add' ? Buffer.byteLength(event.text) : 0);
  if (bytes > 0) note.contentBytes = (note.contentBytes ?? 0) + bytes;
  // An opening part with empty text or empty reasoning is not content yet. An opening tool call, hidden reasoning or other part is content.
  if (bytes > 0 || (event.kind === 'open' && (event.bytes !== undefined || PROMISES.has(event.part.kind))))
    note.content = true;
}

/** Returns the usage, content and errors of an unstreamed answer, for routing and charging. */
export function bodyNoteOf(events: readonly AnswerEvent[], body: unknown): BodyNote {
  const { usage = UNKNOWN_USAGE, contentBytes = 0, error } = noteOf(events, () => body);
  return error === undefined ? { usage, contentBytes } : { usage, contentBytes: 0, error };
}
