import type { EventNote } from '../../core/catalog/upstream';
import { moveUsage } from '../../core/wire/event-data';
import type { NotedEvent } from '../../core/wire/event-reader';

/**
 * Holds the newest chunk with a `finish_reason` until the usage arrives, and writes the usage into it. Old programs read `choices[0]` of
 * every chunk, but the vendors' usage chunk has no choices.
 */
export class HeldFinish {
  readonly #withinMs: number;
  readonly #release: (chunk: Buffer) => void;
  #held: Buffer | undefined;
  #timer: NodeJS.Timeout | undefined;
  #hasReported = false;

  /** Creates the holder of one chunk. After `withinMs` milliseconds, `release` sends the held chunk to the client. */
  constructor(withinMs: number, release: (chunk: Buffer) => void) {
    this.#withinMs = withinMs;
    this.#release = release;
  }

  get isHolding(): boolean {
    return this.#held !== undefined;
  }

  /** Adds to `pieces` the bytes that the client may receive after an event without the final usage. */
  pass({ note, event, raw }: NotedEvent, pieces: Buffer[]): void {
    // A comment of the event stream is not a chunk, so the client may receive the comment before the held chunk.
    if (this.#held !== undefined && event.data !== undefined) pieces.push(...this.take());
    if (note.finish === true) this.#hold(raw);
    else pieces.push(raw);
  }

  /** Returns whether a chunk only repeats usage that the client has already received. */
  repeats(note: EventNote): boolean {
    return this.#hasReported && isUsageAlone(note);
  }

  /** Stops the timer, because the usage has arrived. The held chunk now waits until the call is settled. */
  keep(): void {
    clearTimeout(this.#timer);
  }

  /** Returns the bytes that the client receives for an event with the final usage, in as few chunks as possible. */
  withUsage({ note }: NotedEvent, shown: Buffer): Buffer[] {
    this.#hasReported = true;
    const [held] = this.take();
    if (held === undefined) return [shown];
    const merged = isUsageAlone(note) ? moveUsage(shown, held) : undefined;
    if (merged === undefined) return [held, shown];
    // If the held chunk ended with CR LF, the LF may be the first byte of the chunk with the usage.
    return shown[0] === LF ? [merged, shown.subarray(0, 1)] : [merged];
  }

  take(): Buffer[] {
    clearTimeout(this.#timer);
    const held = this.#held;
    this.#held = undefined;
    return held === undefined ? [] : [held];
  }

  #hold(chunk: Buffer): void {
    this.#held = chunk;
    this.#timer = setTimeout(() => this.take().forEach(this.#release), this.#withinMs);
  }
}

const LF = 0x0a;

function isUsageAlone({ finalUsage, finish, content }: EventNote): boolean {
  return finalUsage === true && finish !== true && content !== true;
}

/** Returns whether the client of a Chat call requests the usage in a separate chunk. `members`: the raw texts of the call's short members. */
export function asksForUsage(members: ReadonlyMap<string, string>): boolean {
  const options: unknown = JSON.parse(members.get('stream_options') ?? 'null');
  return (
    typeof options === 'object' && options !== null && 'include_usage' in options && options.include_usage === true
  );
}
