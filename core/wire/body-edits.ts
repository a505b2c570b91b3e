import type { BodyEdit } from '../catalog/upstream';
import type { MemberPlace } from '../http/json-members';

/** The request body as it arrived, with the positions of its top-level members. */
export interface RequestBody {
  readonly chunks: readonly Buffer[];
  readonly byteLength: number;
  readonly members: ReadonlyMap<string, MemberPlace>;
}

export interface EditedBody {
  readonly chunks: readonly Buffer[];
  readonly byteLength: number;
}

/** Replaces the bytes `from`..`to` of the original text by `text`. */
export interface Splice {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

/**
 * Applies changes to the top-level members of a body. All other bytes stay in the same memory: nothing is parsed, and nothing is copied. If
 * several changes concern one member, the last one counts. `further` are changes inside members that `edits` neither set nor drop.
 */
export function applyBodyEdits(
  body: RequestBody,
  edits: readonly BodyEdit[],
  further: readonly Splice[] = [],
): EditedBody {
  const planned = planSplices(body, edits);
  const splices = further.length === 0 ? planned : [...planned, ...further].sort(byPlace);
  return splices.length === 0 ? body : spliceChunks(body, splices);
}

/** Converts changes of a body's members to splices (replacements of byte ranges). The splices are sorted by position and do not overlap. */
export function planSplices(body: RequestBody, edits: readonly BodyEdit[]): Splice[] {
  const last = new Map<string, BodyEdit>();
  for (const edit of edits) last.set(edit.member, edit);

  const splices: Splice[] = [];
  const drops: MemberPlace[] = [];
  const appended: string[] = [];
  for (const edit of last.values()) {
    const place = body.members.get(edit.member);
    if ('drop' in edit) {
      if (place !== undefined) drops.push(place);
    } else if (place === undefined) {
      appended.push(`${JSON.stringify(edit.member)}:${edit.set}`);
    } else {
      splices.push({ from: place.valueStart, to: place.end, text: edit.set });
    }
  }
  if (drops.length === 0 && appended.length === 0) return splices.sort(byPlace);
  const bytes = new Bytes(body.chunks);
  const lastEnd = endOfLastMember(body, bytes);
  const cuts = planCuts(body.chunks, drops.sort(byStart), bytes);
  splices.push(...cuts);
  if (appended.length > 0) splices.push(planAppend(bytes, cuts, lastEnd, appended.join(',')));
  return splices.sort(byPlace);
}

/** The position of one item of an array. */
export type ItemSpan = Pick<MemberPlace, 'start' | 'end'>;

/**
 * Cuts members out of their objects, or items out of their arrays. `drops` are sorted by position. Each cut includes the comma after the
 * member. A cut at the end of the object or array includes the comma before the member instead. Adjacent cuts become one.
 */
export function planCuts(
  chunks: readonly Buffer[],
  drops: readonly ItemSpan[],
  bytes: Bytes = new Bytes(chunks),
): Splice[] {
  const cuts: { from: number; to: number; text: string }[] = [];
  for (const { start, end } of drops) {
    const isLast = nextSignificantByte(bytes, end).byte !== COMMA;
    const to = isLast ? end : startOfNextMember(bytes, end);
    let cut = cuts.at(-1);
    if (cut?.to === start) cut.to = to;
    else {
      cut = { from: start, to, text: '' };
      cuts.push(cut);
    }
    if (isLast) cut.from = startOfTail(bytes, cut.from);
  }
  return cuts;
}

/** Appends `text` after the last member that `cuts` do not remove, or as the only member if the cuts remove all. */
function planAppend(bytes: Bytes, cuts: readonly Splice[], lastEnd: number, text: string): Splice {
  const tail = cuts.find((cut) => cut.to === lastEnd);
  const before = lastSignificantByte(bytes, tail === undefined ? lastEnd : tail.from);
  return { from: lastEnd, to: lastEnd, text: before.byte === OPEN_BRACE ? text : `,${text}` };
}

/** Returns where the body's last member ends. If a key occurs repeatedly, `members` has its last position, so the last member is always in it. */
function endOfLastMember(body: RequestBody, bytes: Bytes): number {
  let end = 0;
  for (const place of body.members.values()) if (place.end > end) end = place.end;
  return end === 0 ? afterOpeningBrace(bytes) : end;
}

function afterOpeningBrace(bytes: Bytes): number {
  return nextSignificantByte(bytes, 0).at + 1;
}

/** Returns where the next member begins, after the comma that follows `end`. */
function startOfNextMember(bytes: Bytes, end: number): number {
  const comma = nextSignificantByte(bytes, end);
  return nextSignificantByte(bytes, comma.at + 1).at;
}

/** Returns where the cut must begin if it removes the last members of an object: at the comma before these members, if there is one. */
function startOfTail(bytes: Bytes, from: number): number {
  const before = lastSignificantByte(bytes, from);
  return before.byte === COMMA ? before.at : from;
}

const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;

/** The bytes of a text that is stored in several buffers. Reading at nearby or increasing offsets needs no search for the right buffer. */
class Bytes {
  #index = 0;
  /** The offset in the whole text at which the current chunk begins. */
  #base = 0;

  constructor(private readonly chunks: readonly Buffer[]) {}

  at(offset: number): number | undefined {
    while (offset < this.#base) {
      this.#index -= 1;
      this.#base -= this.chunks[this.#index]?.length ?? 0;
    }
    let chunk = this.chunks[this.#index];
    while (chunk !== undefined && offset >= this.#base + chunk.length) {
      this.#base += chunk.length;
      this.#index += 1;
      chunk = this.chunks[this.#index];
    }
    return chunk?.[offset - this.#base];
  }
}

interface FoundByte {
  readonly at: number;
  readonly byte: number;
}

function nextSignificantByte(bytes: Bytes, from: number): FoundByte {
  let at = from;
  let byte = bytes.at(at);
  while (byte !== undefined && isWhiteSpace(byte)) {
    at += 1;
    byte = bytes.at(at);
  }
  return { at, byte: byte ?? 0 };
}

/** Returns the last byte before `end` that is not white space. */
function lastSignificantByte(bytes: Bytes, end: number): FoundByte {
  for (let at = end - 1; at >= 0; at -= 1) {
    const byte = bytes.at(at);
    if (byte !== undefined && !isWhiteSpace(byte)) return { at, byte };
  }
  return { at: 0, byte: 0 };
}

function isWhiteSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function byPlace(one: Splice, other: Splice): number {
  // If two splices begin at the same position, the one with the earlier end comes first. Text is thus inserted before bytes are removed.
  return one.from - other.from || one.to - other.to;
}

function byStart(one: MemberPlace, other: MemberPlace): number {
  return one.start - other.start;
}

/** Applies splices (sorted, without overlap) to a text, without copying the unchanged bytes. */
export function spliceChunks(before: EditedBody, splices: readonly Splice[]): EditedBody {
  const out: Buffer[] = [];
  let byteLength = 0;
  const push = (bytes: Buffer): void => {
    if (bytes.length === 0) return;
    out.push(bytes);
    byteLength += bytes.length;
  };
  let index = 0;
  let base = 0;
  let done = 0;
  const copyUpTo = (end: number): void => {
    while (index < before.chunks.length) {
      const chunk = before.chunks[index] as Buffer;
      push(chunk.subarray(Math.max(done - base, 0), Math.max(end - base, 0)));
      if (base + chunk.length > end) return;
      base += chunk.length;
      index += 1;
    }
  };
  for (const splice of splices) {
    copyUpTo(splice.from);
    push(Buffer.from(splice.text));
    done = splice.to;
  }
  copyUpTo(before.byteLength);
  return { chunks: out, byteLength };
}
