import type { EventNote } from '../../core/catalog/upstream';
import type { NotedEvent } from '../../core/wire/event-reader';
import { moveUsage } from '../../core/wire/move-usage';

/**
 * Holds the newest chunk with a `finish_reason` back until the usage comes, and puts it into that chunk. Old programs read
 * `choices[0]` of every chunk, and the chunk in which vendors send the usage has no choices.
 */
export class HeldFinish {
  readonly #withinMs: number;
  readonly #release: (chunk: Buffer) => void;
  #held: Buffer | undefined;
  #timer: NodeJS.Timeout | undefined;
  #hasTold = false;

  /** `release` gives a chunk to the client that has been held for `withinMs`. */
  constructor(withinMs: number, release: (chunk: Buffer) => void) {
    this.#withinMs = withinMs;
    this.#release = release;
  }

  get isHolding(): boolean {
    return this.#held !== undefined;
  }

  /** Adds to `pieces` what may be given now that an event without the final usage has come. */
  pass({ note, event }: NotedEvent, shown: Buffer, pieces: Buffer[]): void {
    // A comment is no chunk: it may overtake one.
    if (this.#held !== undefined && event.data !== undefined) pieces.push(...this.take());
    if (note.finish === true) this.#hold(shown);
    else pieces.push(shown);
  }

  /** True for a chunk that only repeats the usage which the client has been told. */
  repeats(note: EventNote): boolean {
    return this.#hasTold && isUsageAlone(note);
  }

  /** The usage has come: the held chunk waits for it to be settled, however long that takes. */
  keep(): void {
    clearTimeout(this.#timer);
  }

  /** Returns what is given for an event with the final usage, in as few chunks as can be. */
  withUsage({ note }: NotedEvent, shown: Buffer): Buffer[] {
    this.#hasTold = true;
    const [held] = this.take();
    if (held === undefined) return [shown];
    const merged = isUsageAlone(note) ? moveUsage(shown, held) : undefined;
    if (merged === undefined) return [held, shown];
    // The line feed of the held chunk's last CR LF may have come late.
    return shown[0] === LF ? [merged, shown.subarray(0, 1)] : [merged];
  }

  /** Returns the held chunk, if there is one, and holds it no longer. */
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

/** True when the client of a Chat call wants the usage in a chunk of its own. `members`: the raw texts of the call's short members. */
export function asksForUsage(members: ReadonlyMap<string, string>): boolean {
  const options: unknown = JSON.parse(members.get('stream_options') ?? 'null');
  return (
    typeof options === 'object' && options !== null && 'include_usage' in options && options.include_usage === true
  );
}
