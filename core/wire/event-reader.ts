import type { ClientEvent } from '../catalog/answer';
import type { Protocol } from '../catalog/protocols';
import type { Deltas, EventNote, SseEvent } from '../catalog/upstream';
import { NoteReader } from '../protocols/notes';
import type { TranslatedEvent, Translation } from '../protocols/translation';
import { EventShape } from './event-shape';
import { SseFrame, SseSplitter } from './sse';

/** An event with its exact bytes and its meaning. */
export interface NotedEvent {
  /** Empty if the translation sends nothing to the client for this event. */
  readonly raw: Buffer;
  readonly event: SseEvent;
  readonly note: EventNote;
  /** True if every requested answer has its stop reason, by this event or an earlier one. */
  readonly isWhole: boolean;
}

/** Splits the bytes of an answer into events, and reads the meaning of each. A translation writes what the client gets for it. */
export class EventReader {
  readonly #splitter = new SseSplitter();
  readonly #finish: FinishTracker;
  /** undefined: a translation reads. */
  readonly #notes: NoteReader | undefined;
  /** undefined: every event must be parsed. */
  readonly #deltas: Deltas | undefined;
  #shape: EventShape | undefined;
  #searches = MOST_SEARCHES;

  constructor(
    protocol: Protocol,
    choices: number,
    /** Receives each event as it arrived. */
    readonly watch?: (event: SseEvent) => void,
    /** Absent: the client gets the upstream's events unchanged. */
    readonly translation?: Translation,
    adapterSettings?: unknown,
  ) {
    this.#finish = new FinishTracker(choices);
    this.#notes = translation === undefined ? new NoteReader(protocol, adapterSettings) : undefined;
    this.#deltas = watch === undefined ? this.#notes?.deltas : undefined;
  }

  read(chunk: Buffer): NotedEvent[] {
    const { translation } = this;
    if (translation !== undefined)
      return this.#splitter.push(chunk).flatMap((frame) => this.translated(translation.event(frame)));
    const events: NotedEvent[] = [];
    const readTo = this.#recognise(chunk, events);
    if (readTo === chunk.length) return events;
    for (const frame of this.#splitter.push(readTo === 0 ? chunk : chunk.subarray(readTo))) {
      const note = (this.#notes as NoteReader).event(frame);
      this.watch?.(frame);
      events.push({ raw: frame.raw, event: frame, note, isWhole: this.#finish.note(note) });
      this.#learn(frame.raw, note);
    }
    return events;
  }

  /** Adds the events at the beginning of a chunk that only continue the text. Returns where the first other event begins. */
  #recognise(chunk: Buffer, events: NotedEvent[]): number {
    const shape = this.#shape;
    if (shape === undefined || !this.#splitter.isBetweenEvents) return 0;
    const { isWhole } = this.#finish;
    let at = 0;
    for (let known = shape.read(chunk, at); known !== undefined; known = shape.read(chunk, at)) {
      const { end, contentBytes } = known;
      const raw = end - at === chunk.length ? chunk : chunk.subarray(at, end);
      events.push({ raw, event: new SseFrame(raw), note: { content: true, contentBytes }, isWhole });
      at = end;
    }
    if (at > 0) this.#searches = MOST_SEARCHES;
    return at;
  }

  #learn(raw: Buffer, note: EventNote): void {
    if (this.#deltas === undefined || this.#searches === 0) return;
    this.#searches -= 1;
    this.#shape = EventShape.of(raw, note, this.#deltas) ?? this.#shape;
  }

  /**
   * Returns the bytes after the last whole event when the stream has ended. For a translated answer it returns the events that
   * end it for the client.
   */
  rest(): Buffer | undefined {
    if (this.translation === undefined) return this.#splitter.end()?.raw;
    const written = this.translation.end();
    return written.length === 0 ? undefined : Buffer.concat(written.map(bytesOf));
  }

  get pendingBytes(): number {
    return this.#splitter.pendingBytes;
  }

  get isWhole(): boolean {
    return this.#finish.isWhole;
  }

  /**
   * Attaches the meaning of the upstream's event to the first of the client's events. An error is attached to the last one,
   * because nothing is relayed after an error. The usage is final in the event that reports it to the client.
   */
  translated({ note: noted, written }: TranslatedEvent): NotedEvent[] {
    const isWhole = this.#finish.note(noted);
    if (written.length === 0) return [{ raw: NO_BYTES, event: NO_EVENT, note: meaningOf(noted, true, true), isWhole }];
    const last = written.length - 1;
    return written.map((event, at) => ({
      raw: bytesOf(event),
      event: { name: event.name, data: event.data },
      note: { ...meaningOf(noted, at === 0, at === last), ...shownIn(event) },
      isWhole,
    }));
  }
}

/** The reader tries this many events in a row to learn a shape. If none has one, it stops trying. */
const MOST_SEARCHES = 16;

const NO_BYTES = Buffer.alloc(0);
const NO_EVENT: SseEvent = { name: undefined, data: undefined };

function bytesOf({ name, data }: ClientEvent): Buffer {
  return Buffer.from(name === undefined ? `data: ${data}\n\n` : `event: ${name}\ndata: ${data}\n\n`);
}

type Changing<T> = { -readonly [Name in keyof T]: T[Name] };

/**
 * Returns what the upstream's event means besides what the client sees of it. It runs for every event of every translated stream.
 */
function meaningOf({ content, contentBytes, usage, error, malformed }: EventNote, isFirst: boolean, isLast: boolean) {
  const note: Changing<EventNote> = {};
  if (isFirst && content !== undefined) note.content = content;
  if (isFirst && contentBytes !== undefined) note.contentBytes = contentBytes;
  if (isFirst && usage !== undefined) note.usage = usage;
  if (isFirst && malformed !== undefined) note.malformed = malformed;
  if (isLast && error !== undefined) note.error = error;
  return note;
}

function shownIn({ finish, finalUsage, usageAt }: ClientEvent): EventNote {
  const note: Changing<EventNote> = {};
  if (finish !== undefined) note.finish = finish;
  if (finalUsage !== undefined) note.finalUsage = finalUsage;
  if (usageAt !== undefined) note.usageAt = usageAt;
  return note;
}

/**
 * Finds out when an answer is complete. An answer with one choice is complete with its stop reason. With several choices (`n`)
 * each has its own stop reason.
 */
export class FinishTracker {
  readonly #finished = new Set<number>();
  #isWhole = false;

  constructor(private readonly choices: number) {}

  /** Returns true from the event on that ends the last choice. */
  note(event: EventNote): boolean {
    if (this.#isWhole) return true;
    // The protocol's own end of a stream replaces missing stop reasons. So do counts after the choices, because an upstream that
    // ignores `n` sends fewer choices.
    if (event.done === true) this.#isWhole = true;
    if (event.finalUsage === true && event.finish !== true && this.#finished.size > 0) this.#isWhole = true;
    if (event.finish !== true) return this.#isWhole;
    if (this.choices === 1 || event.finishedChoices === undefined) {
      this.#isWhole = true;
      return true;
    }
    for (const choice of event.finishedChoices) this.#finished.add(choice);
    this.#isWhole = this.#finished.size >= this.choices;
    return this.#isWhole;
  }

  get isWhole(): boolean {
    return this.#isWhole;
  }
}
