import { type Splice, spliceChunks } from './body-edits';
import { findMembers, type MemberPlace } from './json-members';
import { DATA, EventLines, fieldValueStart } from './sse';

/** The values of an event's `data:` lines. They can be replaced inside of the event's bytes. */
export class EventData {
  /** The data as pieces of text. Between two lines of data, the line end stands for the line feed that joins them. */
  readonly chunks: readonly Buffer[];
  readonly byteLength: number;
  readonly #raw: Buffer;
  readonly #pieces: readonly DataPiece[];

  constructor(raw: Buffer) {
    this.#raw = raw;
    this.#pieces = dataOf(raw);
    this.chunks = this.#pieces.map((piece) => piece.bytes);
    this.byteLength = this.chunks.reduce((sum, { length }) => sum + length, 0);
  }

  /** Returns the positions of the members if the data is a JSON object; undefined otherwise. */
  get members(): ReadonlyMap<string, MemberPlace> | undefined {
    return findMembers(this.chunks);
  }

  /** Returns the event with these changes of its data. All other bytes stay unchanged. */
  edited(splices: readonly Splice[]): Buffer {
    const inRaw = splices.map(({ from, to, text }) => ({
      from: this.#placeInRaw(from),
      to: this.#placeInRaw(to),
      text,
    }));
    const { chunks } = spliceChunks({ chunks: [this.#raw], byteLength: this.#raw.length }, inRaw);
    return Buffer.concat(chunks);
  }

  /** Converts an offset in the data to an offset in the raw bytes. The end of a piece belongs to that piece. */
  #placeInRaw(offset: number): number {
    let base = 0;
    for (const { bytes, rawStart } of this.#pieces) {
      if (offset <= base + bytes.length && bytes !== LINE_FEED) return rawStart + offset - base;
      base += bytes.length;
    }
    throw new RangeError('the offset is outside the data');
  }
}

/** A contiguous part of the event's data, and its position in the raw bytes. */
interface DataPiece {
  readonly bytes: Buffer;
  readonly rawStart: number;
}

function dataOf(raw: Buffer): DataPiece[] {
  const pieces: DataPiece[] = [];
  const line = new EventLines(raw);
  while (line.next()) {
    const start = fieldValueStart(raw, line, DATA);
    if (start === undefined) continue;
    if (pieces.length > 0) pieces.push({ bytes: LINE_FEED, rawStart: start });
    pieces.push({ bytes: raw.subarray(start, line.end), rawStart: start });
  }
  return pieces;
}

const LINE_FEED = Buffer.from('\n');
