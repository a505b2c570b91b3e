import type { EventNote, SseEvent, UpstreamAdapter } from '../catalog/upstream';
import { FinishTracker } from './finish-tracker';
import { SseSplitter } from './sse';

/** An event with its exact bytes and what it means. */
export interface NotedEvent {
  readonly raw: Buffer;
  readonly event: SseEvent;
  readonly note: EventNote;
  /** With this event, or before, every answer that was asked for has given its stop reason. */
  readonly isWhole: boolean;
}

/** Cuts an answer's bytes into events and lets the adapter say what each means. */
export class EventReader {
  readonly #splitter = new SseSplitter();
  readonly #finish: FinishTracker;

  constructor(
    readonly adapter: UpstreamAdapter,
    choices: number,
    /** Is told of each event, as it came. */
    readonly watch?: (event: SseEvent) => void,
  ) {
    this.#finish = new FinishTracker(choices);
  }

  /** @throws SseEventTooLarge */
  read(chunk: Buffer): NotedEvent[] {
    return this.#splitter.push(chunk).map((frame) => {
      const note = this.adapter.readEvent(frame);
      this.watch?.(frame);
      return { raw: frame.raw, event: frame, note, isWhole: this.#finish.note(note) };
    });
  }

  /** Bytes after the last whole event, once the stream has ended. */
  rest(): Buffer | undefined {
    return this.#splitter.end()?.raw;
  }

  /** Every answer that was asked for has given its stop reason. */
  get isWhole(): boolean {
    return this.#finish.isWhole;
  }
}
