import type { ClientEvent } from '../catalog/answer';
import type { Protocol } from '../catalog/protocols';
import type { EventNote, SseEvent } from '../catalog/upstream';
import { NoteReader } from '../protocols/notes';
import type { TranslatedEvent, Translation } from '../protocols/translation';
import { EventShapes } from './event-shape';
import { SseFrame, SseSplitter } from './sse';

/** One event with its exact bytes and what the gateway read from it. Several adjacent events that only continue the text are joined into one. */
export interface NotedEvent {
  /** The bytes of the event for the client; empty if the translation sends nothing for this event. */
  readonly raw: Buffer;
  /** The event itself; the last event if several adjacent events are joined. */
  readonly event: SseEvent;
  readonly note: EventNote;
  /** Whether every requested choice has its stop reason, by this event or an earlier one. */
  readonly isWhole: boolean;
}

/**
 * Splits an answer's bytes into events, and reads each event's content, usage, stop reason and error. For a translated answer it returns
 * the client's events.
 */
export class EventReader {
  readonly #splitter = new SseSplitter();
  readonly #finish: FinishTracker;
  /** Reads content, usage, stop reason and error of each event; undefined for a translated answer, because the translation reads them. */
  readonly #notes: NoteReader | undefined;
  /** The learned shapes (bytes around changing texts and numbers) of this stream's events; undefined if every event must be parsed. */
  readonly #shapes: EventShapes | undefined;

  constructor(
    protocol: Protocol,
    choices: number,
    /** Receives each event as it arrived, except those that differ from an earlier one only in texts and numbers. */
    readonly watch?: (event: SseEvent) => void,
    /** The translation of the answer; absent: the client gets the upstream's events unchanged. */
    readonly translation?: Translation,
    adapterSettings?: unknown,
  ) {
    this.#finish = new FinishTracker(choices);
    this.#notes = translation === undefined ? new NoteReader(protocol, adapterSettings) : undefined;
    const deltas = this.#notes?.deltas;
    this.#shapes = deltas && new EventShapes(deltas);
  }

  read(chunk: Buffer): NotedEvent[] {
    const events: NotedEvent[] = [];
    const splitter = this.#splitter;
    const { translation } = this;
    if (translation !== undefined) {
      for (const frame of splitter.push(chunk)) this.#translated(translation.event(frame), events);
      return events;
    }
    splitter.begin(chunk);
    while (splitter.at < chunk.length) {
      if (splitter.isBetweenEvents && this.#shapes?.find(chunk, splitter.at) === true) {
        events.push(this.#found(chunk, splitter.at, this.#shapes));
        splitter.skipTo(this.#shapes.end);
        continue;
      }
      const frame = splitter.next();
      if (frame !== undefined) events.push(this.#noted(frame));
    }
    return events;
  }

  /** Returns the events from `from` on that match learned shapes (bytes around changing texts and numbers), without parsing them. */
  #found(chunk: Buffer, from: number, { end, lastAt, contentBytes }: EventShapes): NotedEvent {
    const raw = end - from === chunk.length ? chunk : chunk.subarray(from, end);
    const event = new SseFrame(raw, lastAt - from);
    return { raw, event, note: { content: true, contentBytes }, isWhole: this.#finish.isWhole };
  }

  #noted(frame: SseFrame): NotedEvent {
    const { raw } = frame;
    // An event that arrived in several chunks may still match a learned shape, and then need not be parsed.
    if (this.#shapes?.find(raw, 0) === true && this.#shapes.end === raw.length)
      return this.#found(raw, 0, this.#shapes);
    const note = (this.#notes as NoteReader).event(frame);
    this.watch?.(frame);
    this.#shapes?.learn(raw, note);
    return { raw, event: frame, note, isWhole: this.#finish.note(note) };
  }

  /** Returns the bytes after the last complete event when the stream has ended. For a translated answer it returns the client's last events. */
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

  /** Returns the client's events for an answer that is translated from a single event. */
  translated(event: TranslatedEvent): NotedEvent[] {
    const events: NotedEvent[] = [];
    this.#translated(event, events);
    return events;
  }

  #translated({ note: noted, written }: TranslatedEvent, events: NotedEvent[]): void {
    const isWhole = this.#finish.note(noted);
    if (written.length === 0)
      events.push({ raw: NO_BYTES, event: NO_EVENT, note: noteFor(noted, true, true), isWhole });
    for (let at = 0; at < written.length; at += 1) {
      const event = written[at] as ClientEvent;
      const note = noteFor(noted, at === 0, at === written.length - 1, event);
      events.push({ raw: bytesOf(event), event: { name: event.name, data: event.data }, note, isWhole });
    }
  }
}

const NO_BYTES = Buffer.alloc(0);
const NO_EVENT: SseEvent = { name: undefined, data: undefined };

function bytesOf({ name, data }: ClientEvent): Buffer {
  return Buffer.from(name === undefined ? `data: ${data}\n\n` : `event: ${name}\ndata: ${data}\n\n`);
}

type Changing<T> = { -readonly [Name in keyof T]: T[Name] };

/**
 * Returns the note (what the gateway read) for one client event. The first client event gets content and usage of the upstream's event. The
 * last one gets its error, because nothing is relayed after an error. The usage is final in the event that reports it to the client.
 */
function noteFor(
  { content, contentBytes, usage, error, malformed }: EventNote,
  isFirst: boolean,
  isLast: boolean,
  shown?: ClientEvent,
): EventNote {
  const note: Changing<EventNote> = {};
  if (isFirst && content !== undefined) note.content = content;
  if (isFirst && contentBytes !== undefined) note.contentBytes = contentBytes;
  if (isFirst && usage !== undefined) note.usage = usage;
  if (isFirst && malformed !== undefined) note.malformed = malformed;
  if (isLast && error !== undefined) note.error = error;
  if (shown?.finish !== undefined) note.finish = shown.finish;
  if (shown?.finalUsage !== undefined) note.finalUsage = shown.finalUsage;
  if (shown?.usageAt !== undefined) note.usageAt = shown.usageAt;
  return note;
}

/**
 * Determines when an answer is complete. An answer with one choice is complete with its stop reason. With several choices (`n`) each needs
 * its own stop reason.
 */
export class FinishTracker {
  readonly #finished = new Set<number>();
  #isWhole = false;

  constructor(private readonly choices: number) {}

  /** Notes an event. Returns whether the answer is complete with this event or an earlier one. */
  note(event: EventNote): boolean {
    if (this.#isWhole) return true;
    // The protocol's own end of a stream completes an answer even without a stop reason. Final token counts complete it, too, if a choice has
    // finished, because an upstream that ignores `n` sends fewer choices.
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
