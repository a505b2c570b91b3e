import { isUtf8 } from 'node:buffer';
import type { Deltas, EventNote } from '../catalog/upstream';
import { BACKSLASH, COLON, isDigit, QUOTE, SPACE, ZERO } from '../http/json-bytes';
import { DATA, EventLines, fieldValueStart } from './sse';

const LF = 0x0a;
const FIRST_NOT_ASCII = 0x80;

/** The maximum size of an event that can match a learned shape. Longer events must be parsed, because adapters read them differently. */
const MAX_EVENT_BYTES = 16 * 1_024;
/** How many event shapes are kept for one stream. The stream may mix text, reasoning and tool calls that run in parallel. */
const MAX_SHAPES = 8;
/** How many events are parsed in a row to learn their shapes. If no event matches a learned shape meanwhile, learning stops for this stream. */
const MAX_SEARCHES = 16;

/** The shapes (bytes around changing texts and numbers) of one stream's events. An event that matches a learned shape need not be parsed. */
export class EventShapes {
  /** Where the last event that was found begins (`lastAt`) and ends (`end`). */
  lastAt = 0;
  end = 0;
  /** The UTF-8 bytes of the text in all events that were found. */
  contentBytes = 0;
  /** The learned shapes. The shape that matched last comes first. */
  readonly #known: EventShape[] = [];
  #searches = MAX_SEARCHES;

  constructor(private readonly deltas: Deltas) {}

  /** Finds adjacent complete events, from `from` on, that match learned shapes. Returns false if there are none. */
  find(bytes: Buffer, from: number): boolean {
    this.end = from;
    this.contentBytes = 0;
    for (let shape = this.#shapeAt(bytes); shape !== undefined; shape = this.#shapeAt(bytes)) {
      this.lastAt = this.end;
      this.end = shape.end;
      this.contentBytes += shape.contentBytes;
    }
    if (this.end === from) return false;
    this.#searches = MAX_SEARCHES;
    return true;
  }

  /** Learns the shape (the bytes around changing texts and numbers) of an event that was parsed. */
  learn(raw: Buffer, note: EventNote): void {
    if (this.#searches === 0) return;
    this.#searches -= 1;
    const shape = EventShape.of(raw, note, this.deltas);
    if (shape === undefined) return;
    this.#known.unshift(shape);
    if (this.#known.length > MAX_SHAPES) this.#known.pop();
  }

  #shapeAt(bytes: Buffer): EventShape | undefined {
    const known = this.#known;
    for (let at = 0; at < known.length; at += 1) {
      const shape = known[at] as EventShape;
      if (!shape.read(bytes, this.end)) continue;
      for (let before = at; before > 0; before -= 1) known[before] = known[before - 1] as EventShape;
      known[0] = shape;
      return shape;
    }
    return undefined;
  }
}

/** The kind of a value that may differ between events of one shape: text that counts as output, other text, or a whole number. */
type Gap = 'said' | 'text' | 'number';

/**
 * The bytes of an event that only continues the text, with gaps for the values that differ between such events. An event with the
 * same bytes around its gaps has the same meaning and need not be parsed. Most events of a stream are like that.
 */
class EventShape {
  /** Where the event that was read last ends. */
  end = 0;
  contentBytes = 0;
  readonly #text = new TextReader();

  private constructor(
    /** The bytes that all events of this shape have in common, without the gaps for changing values. */
    private readonly fixed: Uint8Array,
    /** The number of bytes in `fixed` that come before each gap; the last number counts all of them. */
    private readonly fixedTo: readonly number[],
    private readonly gaps: readonly Gap[],
  ) {}

  /** Returns the shape of a parsed event; undefined if another event with the same fixed bytes could need different handling by the gateway. */
  static of(raw: Buffer, note: EventNote, deltas: Deltas): EventShape | undefined {
    if (raw.length > MAX_EVENT_BYTES || raw[raw.length - 1] !== LF || !isContentAlone(note)) return undefined;
    const places = placesIn(raw, deltas);
    const said = places?.filter(({ gap }) => gap === 'said');
    // Only one text may count as output, because the reader of a shape measures the length of one output text only.
    if (places === undefined || said?.length !== 1 || said[0]?.contentBytes !== note.contentBytes) return undefined;
    const parts = [...places, undefined].map((place, at) => raw.subarray(places[at - 1]?.end ?? 0, place?.start));
    let fixedTo = 0;
    return new EventShape(
      // The bytes are copied, because a view would keep a whole chunk, or a pool of Node's, in memory as long as the stream.
      new Uint8Array(Buffer.concat(parts)),
      parts.map(({ length }) => (fixedTo += length)),
      places.map(({ gap }) => gap),
    );
  }

  /** Reads the event that begins at `from`. Returns false if that event is incomplete or its bytes do not match this shape. */
  read(bytes: Buffer, from: number): boolean {
    const { fixed, fixedTo, gaps } = this;
    let at = from;
    let compared = 0;
    for (let index = 0; index < fixedTo.length; index += 1) {
      const to = fixedTo[index] as number;
      if (at + to - compared > bytes.length) return false;
      while (compared < to) if (bytes[at++] !== fixed[compared++]) return false;
      const gap = gaps[index];
      if (gap === undefined) break;
      const end = gap === 'number' ? endOfNumber(bytes, at) : this.#text.endIn(bytes, at);
      if (end === undefined || (gap === 'said' && end === at)) return false;
      if (gap === 'said') this.contentBytes = this.#text.utf8Bytes;
      at = end;
    }
    this.end = at;
    return at - from <= MAX_EVENT_BYTES;
  }
}

function isContentAlone({ content, contentBytes, ...rest }: EventNote): boolean {
  return content === true && contentBytes !== undefined && contentBytes > 0 && Object.keys(rest).length === 0;
}

interface Span {
  readonly gap: Gap;
  readonly start: number;
  readonly end: number;
  /** The size of a text value in UTF-8 bytes; undefined if the value is a number. */
  readonly contentBytes?: number;
}

/** Finds the values that may differ between similar events, in an event with one `data:` line. Returns undefined if finding them needs a JSON parser. */
function placesIn(raw: Buffer, { texts, ignored = [] }: Deltas): Span[] | undefined {
  const range = onlyDataOf(raw);
  if (range === undefined) return undefined;
  const places: Span[] = [];
  const text = new TextReader();
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
      if (isGap && text.endIn(raw, start) !== end) return undefined;
      if (isGap) places.push({ gap, start, end, contentBytes: text.utf8Bytes });
    } else if (name !== undefined && ignored.includes(name)) {
      const end = endOfNumber(raw, at);
      if (end !== undefined) places.push({ gap: 'number', start: at, end });
      if (end !== undefined) at = end - 1;
    } else if (byte === UPPER_N || byte === UPPER_I) return undefined;
    name = undefined;
  }
  return places;
}

/** The first letters of `NaN` and `Infinity`, which are not JSON and which adapters read differently. */
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

/** Finds the end of a JSON string. It gives up at an escape such as `\u00e9`, which needs a JSON parser; it can read short ones such as `\n`. */
class TextReader {
  /** The UTF-8 bytes of the last text that was read. */
  utf8Bytes = 0;

  /** Returns where the string that begins at `start` ends; undefined if it is incomplete, or must be parsed. */
  endIn(bytes: Buffer, start: number): number | undefined {
    let isAscii = true;
    let escapeBytes = 0;
    for (let at = start; at < bytes.length; at += 1) {
      const byte = bytes[at] as number;
      if (byte === QUOTE) {
        this.utf8Bytes = at - start - escapeBytes;
        return isAscii || isUtf8(bytes.subarray(start, at)) ? at : undefined;
      }
      if (byte < SPACE) return undefined;
      if (byte >= FIRST_NOT_ASCII) isAscii = false;
      if (byte !== BACKSLASH) continue;
      at += 1;
      if (at < bytes.length && !SHORT_ESCAPES.includes(bytes[at] as number)) return undefined;
      escapeBytes += 1;
    }
    return undefined;
  }
}

/** The characters that may follow a backslash in JSON for one byte of text, such as the `n` of `\n`. */
const SHORT_ESCAPES = Buffer.from('"\\/bfnrt');

/** Returns where the number that begins at `start` ends; undefined if it is negative or no number. */
function endOfNumber(bytes: Buffer, start: number): number | undefined {
  let at = start;
  while (at < bytes.length && isDigit(bytes[at] as number)) at += 1;
  return at === start || (bytes[start] === ZERO && at - start > 1) ? undefined : at;
}
