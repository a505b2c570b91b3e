import { formatUsd } from '../base/money';
import { findMembers, findPlace, type MemberPlace, sliceChunks } from '../http/json-members';
import { planSplices, type Splice, spliceChunks } from './body-edits';
import { DATA, EventLines, fieldValueStart } from './sse';

/** The values of an event's `data:` lines. They can be replaced inside of the event's bytes. */
class EventData {
  /** The data as pieces of text. Between two `data:` lines stands a piece with the line feed that joins them. */
  readonly chunks: readonly Buffer[];
  readonly byteLength: number;
  readonly #pieces: readonly DataPiece[];

  constructor(private readonly raw: Buffer) {
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
    const { chunks } = spliceChunks({ chunks: [this.raw], byteLength: this.raw.length }, inRaw);
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

const USAGE = ['usage'] as const;

/**
 * Writes the cost of a call into the `usage` of an event: `"cost":0.00012345` as its last member. It replaces a member `cost`.
 * All other bytes stay unchanged, as does an event without a usage object.
 * @param path the members that lead to the usage
 */
export function annotateCost(raw: Buffer, costE8: bigint, path: readonly string[] = USAGE): Buffer {
  const data = new EventData(raw);
  const usage = findPlace(data.chunks, path);
  if (usage === undefined) return raw;

  const text = sliceChunks(data.chunks, usage.valueStart, usage.end);
  const members = findMembers([text]);
  if (members === undefined) return raw;

  const body = { chunks: [text], byteLength: text.length, members };
  const splices = planSplices(body, [{ member: 'cost', set: formatUsd(costE8) }]);
  return data.edited(
    splices.map(({ from, to, text }) => ({ from: usage.valueStart + from, to: usage.valueStart + to, text })),
  );
}

/**
 * Writes the `usage` of the event `from` into the event `into`, in place of an existing one. All other bytes of `into` stay unchanged.
 * Returns undefined if the data of either event is no JSON object, or `from` has no usage.
 */
export function moveUsage(from: Buffer, into: Buffer): Buffer | undefined {
  const source = new EventData(from);
  const usage = source.members?.get('usage');
  const target = new EventData(into);
  const { chunks, byteLength, members } = target;
  if (usage === undefined || members === undefined) return undefined;

  // A line feed between two `data:` lines is white space of the JSON. A line feed inside of one `data:` line would end the field.
  const set = sliceChunks(source.chunks, usage.valueStart, usage.end).toString().replaceAll('\n', ' ');
  return target.edited(planSplices({ chunks, byteLength, members }, [{ member: 'usage', set }]));
}
