import type { SseEvent } from '../catalog/upstream';

/** One event with its exact bytes, including its blank line. Its fields are parsed on first use. */
export class SseFrame implements SseEvent {
  #fields: SseEvent | undefined;

  constructor(
    readonly raw: Buffer,
    private readonly from = 0,
  ) {}

  get name(): string | undefined {
    this.#fields ??= readFields(this.raw, this.from);
    return this.#fields.name;
  }

  get data(): string | undefined {
    this.#fields ??= readFields(this.raw, this.from);
    return this.#fields.data;
  }
}

/** The maximum size of an event. No real event is nearly as long, but an upstream that never ends a line must not fill the memory. */
const MAX_SSE_EVENT_BYTES = 8 * 1_024 * 1_024;

export class SseEventTooLarge extends Error {
  override readonly name = 'SseEventTooLarge';

  constructor(readonly maxBytes: number) {
    super(`an event of the stream has more than ${maxBytes} bytes`);
  }
}

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
const NOTHING = Buffer.alloc(0);
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * Splits a byte stream into server-sent events as they arrive. Lines end with LF, CRLF or CR. It emits an event as soon as the blank line
 * has arrived. If that line ends with CRLF and the LF arrives later, the LF becomes the first byte of the next event. All raw bytes and the
 * result of `end` together are exactly the input.
 */
export class SseSplitter {
  readonly #maxEventBytes: number;
  /** The part of the current event that arrived in earlier chunks. */
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  /** Whether nothing of the current line has arrived. */
  #lineIsEmpty = true;
  /** Whether the last byte was a CR, so that a following LF belongs to the same line end. */
  #afterCr = false;
  #isFirst = true;
  /** The chunk that is being read. `at` is the offset at which reading continues. */
  #chunk: Buffer = NOTHING;
  at = 0;
  /** The offsets of the next LF and the next CR in the chunk. */
  #lf = -1;
  #cr = -1;

  constructor(maxEventBytes = MAX_SSE_EVENT_BYTES) {
    this.#maxEventBytes = maxEventBytes;
  }

  /**
   * Adds a chunk, and returns the events that it completes.
   * @throws {SseEventTooLarge}
   */
  push(chunk: Buffer): SseFrame[] {
    const frames: SseFrame[] = [];
    this.begin(chunk);
    for (let frame = this.next(); frame !== undefined; frame = this.next()) frames.push(frame);
    return frames;
  }

  /** Sets the next chunk to read. The previous chunk must have been read completely. */
  begin(chunk: Buffer): void {
    this.#chunk = chunk;
    this.#lf = -1;
    this.#cr = -1;
    this.#moveTo(0);
  }

  /** Skips the chunk up to `end`, because the caller has read an event that ends there. */
  skipTo(end: number): void {
    this.#moveTo(end);
  }

  /**
   * Returns the next event; undefined if the chunk does not complete one. It then keeps the rest of the chunk.
   * @throws {SseEventTooLarge}
   */
  next(): SseFrame | undefined {
    const chunk = this.#chunk;
    if (chunk.length === 0) return undefined;
    const eventStart = this.at;
    let lineStart = eventStart + this.#lateLf();
    while (lineStart < chunk.length) {
      if (this.#lf < lineStart) this.#lf = indexOrEnd(chunk, LF, lineStart);
      if (this.#cr < lineStart) this.#cr = indexOrEnd(chunk, CR, lineStart);
      const cr = this.#cr;
      const lineEnd = Math.min(this.#lf, cr);
      if (lineEnd > lineStart && !this.#isOnlyMark(chunk, eventStart, lineEnd)) this.#lineIsEmpty = false;
      if (lineEnd === chunk.length) break;
      const next = lineEnd === cr && chunk[cr + 1] === LF ? cr + 2 : lineEnd + 1;
      this.#afterCr = next === chunk.length && chunk[next - 1] === CR;
      const isBlank = this.#lineIsEmpty;
      this.#lineIsEmpty = true;
      lineStart = next;
      if (!isBlank) continue;
      this.#moveTo(next);
      return this.#take(chunk.subarray(eventStart, next));
    }
    this.#moveTo(chunk.length);
    this.#keep(chunk.subarray(eventStart));
    return undefined;
  }

  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  get isBetweenEvents(): boolean {
    return this.#pendingBytes === 0 && this.#lineIsEmpty && !this.#afterCr;
  }

  /** Returns the bytes after the last blank line: an incomplete event, or nothing. */
  end(): SseFrame | undefined {
    return this.#pendingBytes === 0 ? undefined : this.#take(NOTHING);
  }

  #moveTo(at: number): void {
    this.at = at;
    // A stream may be silent for long, and must not keep bytes in memory that were already read.
    if (at === this.#chunk.length) this.#chunk = NOTHING;
  }

  #lateLf(): number {
    const bytes = this.#afterCr && this.#chunk[this.at] === LF ? 1 : 0;
    if (this.#chunk.length > 0) this.#afterCr = false;
    return bytes;
  }

  /** Returns whether a line is only the byte order mark that may begin a stream and belongs to no line. */
  #isOnlyMark(chunk: Buffer, eventStart: number, lineEnd: number): boolean {
    if (!this.#isFirst || this.#pendingBytes + lineEnd - eventStart > BYTE_ORDER_MARK.length) return false;
    const line = Buffer.concat([...this.#pending, chunk.subarray(eventStart, lineEnd)]);
    return BYTE_ORDER_MARK.subarray(0, line.length).equals(line);
  }

  #keep(rest: Buffer): void {
    if (rest.length === 0) return;
    this.#pending.push(rest);
    this.#pendingBytes += rest.length;
    if (this.#pendingBytes > this.#maxEventBytes) throw new SseEventTooLarge(this.#maxEventBytes);
    if (this.#pending.length === MAX_PENDING_PIECES) this.#pending = [Buffer.concat(this.#pending)];
  }

  #take(last: Buffer): SseFrame {
    const raw = this.#pendingBytes === 0 ? last : Buffer.concat([...this.#pending, last]);
    if (raw.length > this.#maxEventBytes) throw new SseEventTooLarge(this.#maxEventBytes);
    this.#pending = [];
    this.#pendingBytes = 0;
    const hasMark = this.#isFirst && raw.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK);
    this.#isFirst = false;
    return new SseFrame(raw, hasMark ? BYTE_ORDER_MARK.length : 0);
  }
}

/** Splits the pieces of a whole stream. The bytes after the last blank line, if there are any, are the last event. */
export function splitWhole(pieces: readonly Buffer[]): SseFrame[] {
  const splitter = new SseSplitter();
  const frames = pieces.flatMap((piece) => splitter.push(piece));
  const rest = splitter.end();
  return rest === undefined ? frames : [...frames, rest];
}

/** How many chunks of an incomplete event are kept before they are joined. Many small chunks take more memory than the event itself. */
const MAX_PENDING_PIECES = 1_024;

function indexOrEnd(chunk: Buffer, byte: number, from: number): number {
  const index = chunk.indexOf(byte, from);
  return index === -1 ? chunk.length : index;
}

/** Iterates over the lines of one event's raw bytes. `start`..`end` is the current line without its line end. */
export class EventLines {
  start = 0;
  end = 0;

  #next: number;
  #lf: number;
  #cr: number;

  constructor(
    private readonly raw: Buffer,
    from = 0,
  ) {
    this.#next = from;
    this.#lf = indexOrEnd(raw, LF, from);
    this.#cr = indexOrEnd(raw, CR, from);
  }

  next(): boolean {
    const raw = this.raw;
    this.start = this.#next;
    if (this.start >= raw.length) return false;
    if (this.#lf < this.start) this.#lf = indexOrEnd(raw, LF, this.start);
    if (this.#cr < this.start) this.#cr = indexOrEnd(raw, CR, this.start);
    this.end = Math.min(this.#lf, this.#cr);
    this.#next = this.end === this.#cr && raw[this.#cr + 1] === LF ? this.#cr + 2 : this.end + 1;
    return true;
  }
}

/** Returns where the value of `field` begins: after the colon and one space; undefined if the line has another field. */
export function fieldValueStart(raw: Buffer, line: EventLines, field: Buffer): number | undefined {
  const colon = line.start + field.length;
  if (line.end < colon) return undefined;
  for (let at = 0; at < field.length; at += 1) if (raw[line.start + at] !== field[at]) return undefined;
  if (line.end === colon) return colon;
  if (raw[colon] !== COLON) return undefined;
  return colon + 1 < line.end && raw[colon + 1] === SPACE ? colon + 2 : colon + 1;
}

export const DATA = Buffer.from('data');
const EVENT = Buffer.from('event');

function readFields(raw: Buffer, from: number): SseEvent {
  let name: string | undefined;
  let data: string | undefined;
  const line = new EventLines(raw, from);
  while (line.next()) {
    const dataStart = fieldValueStart(raw, line, DATA);
    if (dataStart !== undefined) {
      const text = raw.toString('utf8', dataStart, line.end);
      data = data === undefined ? text : `${data}\n${text}`;
      continue;
    }
    const nameStart = fieldValueStart(raw, line, EVENT);
    if (nameStart !== undefined) name = raw.toString('utf8', nameStart, line.end);
  }
  return { name, data };
}
