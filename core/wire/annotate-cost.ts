import { formatUsd } from '../money';
import { planSplices, type Splice, spliceChunks } from './body-edits';
import { findMembers, sliceChunks } from './json-members';
import { DATA, EventLines, fieldValueStart } from './sse';

/**
 * Writes what a call cost into the `usage` of the event that carries it: `"cost":0.00012345` as its last member, in the
 * place of one that is there already. Every other byte stays as it came, and so does an event without a usage object.
 */
export function annotateCost(raw: Buffer, costE8: bigint): Buffer {
  const pieces = dataOf(raw);
  const chunks = pieces.map((piece) => piece.bytes);
  const usage = findMembers(chunks)?.get('usage');
  if (usage === undefined) return raw;

  const text = sliceChunks(chunks, usage.valueStart, usage.end);
  const members = findMembers([text]);
  if (members === undefined) return raw;

  const body = { chunks: [text], byteLength: text.length, members };
  const inRaw = planSplices(body, [{ member: 'cost', set: formatUsd(costE8) }]).map((splice) => ({
    from: placeInRaw(pieces, usage.valueStart + splice.from),
    to: placeInRaw(pieces, usage.valueStart + splice.to),
    text: splice.text,
  }));
  return Buffer.concat(spliceChunks({ chunks: [raw], byteLength: raw.length }, inRaw satisfies Splice[]).chunks);
}

/** A run of the event's data, and where it stands in the raw bytes. */
interface DataPiece {
  readonly bytes: Buffer;
  readonly rawStart: number;
}

/** The values of the `data:` lines. The end of a line stands for the line feed that joins it to the next. */
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

/** Where an offset into the data stands in the raw bytes; the end of a piece belongs to it. */
function placeInRaw(pieces: readonly DataPiece[], offset: number): number {
  let base = 0;
  for (const piece of pieces) {
    if (offset <= base + piece.bytes.length && piece.bytes !== LINE_FEED) return piece.rawStart + offset - base;
    base += piece.bytes.length;
  }
  throw new RangeError('the offset is outside the data');
}
