import type { OutputFrame } from '../suppliers/supplier';

export type OutputStream = OutputFrame['stream'];

/** A part of one stream's output: whole UTF-8 characters, numbered in order. */
export interface Piece {
  readonly sequence: number;
  readonly stream: OutputStream;
  readonly bytes: Buffer;
}

/** How many bytes of each stream are kept. The oldest are dropped first. */
export const MOST_KEPT = 1_048_576;

const MOST_OF_PIECE = 16_384;

/**
 * The size from which a piece counts as full. A piece never cuts a character in two, so it may be up to three bytes shorter or
 * longer than its target.
 */
const FULL_PIECE = MOST_OF_PIECE - 3;
const LARGEST_PIECE = MOST_OF_PIECE + 3;

/** The most pieces of each stream, because a command that prints a little for ever must be bounded too. */
const MOST_PIECES = 16_384;

/**
 * The last mebibyte of each stream, in numbered pieces. A piece may grow until `take` returns it for writing. Readers use the
 * numbers as their position.
 */
export class KeptOutput {
  #pieces: Piece[] = [];
  #sequence = 0;
  /** The number of the last piece that `take` has returned. */
  #taken = 0;
  readonly #bytes = { stdout: 0, stderr: 0 };
  readonly #count = { stdout: 0, stderr: 0 };
  /** The bytes of a character whose rest has not arrived yet. */
  readonly #unfinished: Record<OutputStream, Buffer> = { stdout: EMPTY, stderr: EMPTY };
  /** Buffers of pieces that were dropped before `take` returned them. Reusing them keeps a command that prints fast from creating garbage. */
  readonly #free: Buffer[] = [];
  readonly truncated = { stdout: false, stderr: false };

  get lastSequence(): number {
    return this.#sequence;
  }

  add({ stream, bytes }: OutputFrame): void {
    const begun = this.#unfinished[stream];
    const all = begun.length === 0 ? bytes : Buffer.concat([begun, bytes]);
    const whole = all.subarray(0, all.length - unfinishedBytes(all));
    this.#unfinished[stream] = whole.length === all.length ? EMPTY : Buffer.from(all.subarray(whole.length));
    this.#append(stream, whole);
  }

  /** Ends the output. An unfinished character is kept as it is. */
  end(): void {
    for (const stream of ['stdout', 'stderr'] as const) this.#append(stream, this.#unfinished[stream]);
  }

  /** Returns the pieces added since the last call and still kept, and the oldest number that is kept of each stream. */
  take(): { readonly added: readonly Piece[]; readonly oldest: Readonly<Record<OutputStream, number>> } {
    const added = this.#pieces.filter(({ sequence }) => sequence > this.#taken);
    this.#taken = this.#sequence;
    const oldestOf = (stream: OutputStream) =>
      this.#pieces.find((piece) => piece.stream === stream)?.sequence ?? this.#sequence + 1;
    return { added, oldest: { stdout: oldestOf('stdout'), stderr: oldestOf('stderr') } };
  }

  text(stream: OutputStream): string {
    return textOf(this.#pieces, stream);
  }

  #append(stream: OutputStream, bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0) {
      const last = this.#pieces.at(-1);
      const canGrow = last?.stream === stream && last.sequence > this.#taken && last.bytes.length < MOST_OF_PIECE;
      const begun = canGrow ? last.bytes : EMPTY;
      const part = wholeStart(rest, MOST_OF_PIECE - begun.length);
      if (canGrow) this.#pieces.pop();
      else {
        this.#sequence += 1;
        this.#count[stream] += 1;
      }
      this.#pieces.push({ sequence: this.#sequence, stream, bytes: this.#join(begun, part) });
      this.#bytes[stream] += part.length;
      rest = rest.subarray(part.length);
      this.#forget(stream);
    }
  }

  #join(begun: Buffer, part: Buffer): Buffer {
    const length = begun.length + part.length;
    if (length < FULL_PIECE) return Buffer.concat([begun, part]);
    const block = this.#free.pop() ?? Buffer.allocUnsafeSlow(LARGEST_PIECE);
    begun.copy(block);
    part.copy(block, begun.length);
    return block.subarray(0, length);
  }

  /** Drops pieces that the last mebibyte does not need. */
  #forget(stream: OutputStream): void {
    if (this.#bytes[stream] > MOST_KEPT || this.#count[stream] > MOST_PIECES) this.truncated[stream] = true;
    for (;;) {
      const index = this.#pieces.findIndex((piece) => piece.stream === stream);
      const piece = this.#pieces[index];
      const bytes = piece?.bytes.length ?? 0;
      const isNeeded = this.#bytes[stream] - bytes < MOST_KEPT && this.#count[stream] <= MOST_PIECES;
      if (piece === undefined || isNeeded) return;
      this.#pieces.splice(index, 1);
      if (bytes >= FULL_PIECE && piece.sequence > this.#taken) this.#free.push(Buffer.from(piece.bytes.buffer));
      this.#bytes[stream] -= bytes;
      this.#count[stream] -= 1;
    }
  }
}

const EMPTY: Buffer = Buffer.alloc(0);

/** Returns the last mebibyte of a stream as text. */
export function textOf(pieces: readonly Piece[], stream: OutputStream): string {
  const all = Buffer.concat(pieces.filter((piece) => piece.stream === stream).map(({ bytes }) => bytes));
  let start = Math.max(0, all.length - MOST_KEPT);
  while (start > 0 && isContinuation(all[start])) start += 1;
  return all.subarray(start).toString();
}

/** Returns as much of the start as fits without cutting a character in two, but at least one character. */
function wholeStart(bytes: Buffer, most: number): Buffer {
  if (bytes.length <= most) return bytes;
  const part = bytes.subarray(0, Math.max(most, 4));
  return part.subarray(0, part.length - unfinishedBytes(part));
}

/** Counts the bytes at the end that begin a character whose rest is missing. */
function unfinishedBytes(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (isContinuation(byte)) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
