import { isUtf8 } from 'node:buffer';
import type { Deltas, EventNote } from '../catalog/upstream';
import { DATA, EventLines, fieldValueStart } from './sse';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const SPACE = 0x20;
const LF = 0x0a;
const ZERO = 0x30;
const NINE = 0x39;
const FIRST_NOT_ASCII = 0x80;

/** Adapters read longer events in other ways. */
const LONGEST_BYTES = 16 * 1_024;

/** The kind of a gap between fixed bytes: text that counts as output, other text, or a whole number. */
type Gap = 'said' | 'text' | 'number';

/**
 * The bytes of an event that only continues the text, with gaps for the values that differ between such events. An event with the
 * same bytes around its gaps has the same meaning and need not be parsed. Most events of a stream are like that.
 */
export class EventShape {
  private constructor(
    /** There is one fixed part more than there are gaps. */
    private readonly fixed: readonly Buffer[],
    private readonly gaps: readonly Gap[],
  ) {}

  /** Returns the shape of an event that was parsed; undefined if another event of its shape could mean something else. */
  static of(raw: Buffer, note: EventNote, deltas: Deltas): EventShape | undefined {
    if (raw.length > LONGEST_BYTES || raw[raw.length - 1] !== LF || !isContentAlone(note)) return undefined;
    const places = placesIn(raw, deltas);
    const said = places?.filter(({ gap }) => gap === 'said');
    // Only its text may count as output, because only the consequences of its length are known.
    if (places === undefined || said?.length !== 1 || lengthOf(said[0]) !== note.contentBytes) return undefined;
    const fixed = [...places, undefined].map((place, at) => raw.subarray(places[at - 1]?.end ?? 0, place?.start));
    // Copies the bytes, because a view of a large chunk would keep the whole chunk in memory.
    return new EventShape(
      fixed.map((bytes) => Buffer.from(bytes)),
      places.map(({ gap }) => gap),
    );
  }

  /** Returns the meaning of an event that begins here, if it is complete and has this shape. */
  read(bytes: Buffer, from: number): { readonly end: number; readonly contentBytes: number } | undefined {
    let at = from;
    let contentBytes = 0;
    for (let index = 0; index < this.fixed.length; index += 1) {
      const fixed = this.fixed[index] as Buffer;
      if (at + fixed.length > bytes.length) return undefined;
      for (let each = 0; each < fixed.length; each += 1) if (bytes[at + each] !== fixed[each]) return undefined;
      at += fixed.length;
      const gap = this.gaps[index];
      if (gap === undefined) break;
      const end = gap === 'number' ? endOfNumber(bytes, at) : endOfText(bytes, at);
      if (end === undefined || (gap === 'said' && end === at)) return undefined;
      if (gap === 'said') contentBytes = end - at;
      at = end;
    }
    return at - from > LONGEST_BYTES ? undefined : { end: at, contentBytes };
  }
}

function isContentAlone({ content, contentBytes, ...rest }: EventNote): boolean {
  return content === true && contentBytes !== undefined && contentBytes > 0 && Object.keys(rest).length === 0;
}

interface Place {
  readonly gap: Gap;
  readonly start: number;
  readonly end: number;
}

function lengthOf(place: Place | undefined): number {
  return place === undefined ? 0 : place.end - place.start;
}

/** Finds the values that may change, in the only line of data; undefined if one is not written plainly. */
function placesIn(raw: Buffer, { texts, ignored = [] }: Deltas): Place[] | undefined {
  const range = onlyDataOf(raw);
  if (range === undefined) return undefined;
  const places: Place[] = [];
  let name: string | undefined;
  for (let at = range.start; at < range.end; at += 1) {
    const byte = raw[at] as number;
    if (byte === QUOTE) {
      const start = at + 1;
      const end = endOfString(raw, start);
      if (end === undefined) return undefined;
      at = end;
      const next = afterSpaces(raw, end + 1);
      if (raw[next] === COLON) {
        name = raw.toString('latin1', start, end);
        if (name.includes('\\')) return undefined;
        at = afterSpaces(raw, next + 1) - 1;
        continue;
      }
      const gap = name !== undefined && texts.includes(name) ? 'said' : 'text';
      const isGap = name !== undefined && (gap === 'said' ? end > start : ignored.includes(name));
      if (isGap && endOfText(raw, start) !== end) return undefined;
      if (isGap) places.push({ gap, start, end });
    } else if (name !== undefined && ignored.includes(name)) {
      const end = endOfNumber(raw, at);
      if (end !== undefined) places.push({ gap: 'number', start: at, end });
      if (end !== undefined) at = end - 1;
    } else if (byte === UPPER_N || byte === UPPER_I) return undefined;
    name = undefined;
  }
  return places;
}

/** `NaN` and `Infinity` are not JSON, and adapters read them in their own ways. */
const UPPER_N = 0x4e;
const UPPER_I = 0x49;

function onlyDataOf(raw: Buffer): { readonly start: number; readonly end: number } | undefined {
  let found: { readonly start: number; readonly end: number } | undefined;
  const line = new EventLines(raw);
  while (line.next()) {
    const start = fieldValueStart(raw, line, DATA);
    if (start === undefined) continue;
    if (found !== undefined) return undefined;
    found = { start, end: line.end };
  }
  return found;
}

function afterSpaces(raw: Buffer, from: number): number {
  let at = from;
  while (raw[at] === SPACE) at += 1;
  return at;
}

function endOfString(raw: Buffer, start: number): number | undefined {
  for (let at = start; at < raw.length; at += 1) {
    if (raw[at] === BACKSLASH) at += 1;
    else if (raw[at] === QUOTE) return at;
  }
  return undefined;
}

/** Returns where a string ends whose bytes are plain UTF-8; undefined for a string with escapes or anything else. */
function endOfText(bytes: Buffer, start: number): number | undefined {
  let isAscii = true;
  for (let at = start; at < bytes.length; at += 1) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) return isAscii || isUtf8(bytes.subarray(start, at)) ? at : undefined;
    if (byte === BACKSLASH || byte < SPACE) return undefined;
    if (byte >= FIRST_NOT_ASCII) isAscii = false;
  }
  return undefined;
}

/** Returns where a number ends that is not negative; undefined if none begins here. */
function endOfNumber(bytes: Buffer, start: number): number | undefined {
  let at = start;
  while (at < bytes.length && (bytes[at] as number) >= ZERO && (bytes[at] as number) <= NINE) at += 1;
  return at === start || (bytes[start] === ZERO && at - start > 1) ? undefined : at;
}
