import { type Splice, spliceChunks } from './body-edits';
import { findMembers, type MemberPlace } from './json-members';
import { DATA, EventLines, fieldValueStart } from './sse';

/** The values of an event's `data:` lines, which can be changed where they stand in the event's bytes. */
export class EventData {
  /** As text in pieces. The end of a line stands for the line feed that joins it to the next. */
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

  /** The places of the members of the JSON object that the data is; undefined when it is none. */
  get members(): ReadonlyMap<string, MemberPlace> | undefined {
    return findMembers(this.chunks);
  }

  /** Returns the event with these changes of its data; every other byte stays as it came. */
  edited(splices: readonly Splice[]): Buffer {
    const inRaw = splices.map(({ from, to, text }) => ({
      from: this.#placeInRaw(from),
      to: this.#placeInRaw(to),
      text,
    }));
    const { chunks } = spliceChunks({ chunks: [this.#raw], byteLength: this.#raw.length }, inRaw);
    return Buffer.concat(chunks);
  }

  /** Where an offset into the data stands in the raw bytes; the end of a piece belongs to it. */
  #placeInRaw(offset: number): number {
    let base = 0;
    for (const { bytes, rawStart } of this.#pieces) {
      if (offset <= base + bytes.length && bytes !== LINE_FEED) return rawStart + offset - base;
      base += bytes.length;
    }
    throw new RangeError('the offset is outside the data');
  }
}

/** A run of the event's data, and where it stands in the raw bytes. */
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
