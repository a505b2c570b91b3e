import { SseSplitter } from './sse';
import type { EventNote, UpstreamAdapter } from './upstream';

/** An event with its exact bytes and what it means. */
export interface NotedEvent {
  readonly raw: Buffer;
  readonly note: EventNote;
}

/** Cuts an answer's bytes into events and lets the adapter say what each means. */
export class EventReader {
  readonly #splitter = new SseSplitter();
  readonly #unfinished: Set<number>;

  constructor(
    readonly adapter: UpstreamAdapter,
    choices: number,
  ) {
    this.#unfinished = new Set(Array.from({ length: choices }, (_, index) => index));
  }

  /** @throws when an event is larger than the splitter allows */
  read(chunk: Buffer): NotedEvent[] {
    return this.#splitter.push(chunk).map(({ raw, event }) => {
      const note = this.adapter.readEvent(event);
      for (const choice of note.finishedChoices ?? []) this.#unfinished.delete(choice);
      return { raw, note };
    });
  }

  /** Bytes after the last whole event, once the stream has ended. */
  rest(): Buffer {
    return this.#splitter.end();
  }

  /** Every answer that was asked for has given its stop reason. */
  get isFinished(): boolean {
    return this.#unfinished.size === 0;
  }
}
