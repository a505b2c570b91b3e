import type { OutputFrame } from '../suppliers/supplier';

export type OutputStream = OutputFrame['stream'];

/** A part of a command's stdout or stderr: whole UTF-8 characters, with a number in the order of arrival. */
export interface Piece {
  readonly sequence: number;
  readonly stream: OutputStream;
  readonly bytes: Buffer;
}

/** How many bytes of a command's stdout and of its stderr are kept. The oldest bytes are dropped first. */
export const MAX_KEPT_BYTES = 1_048_576;

const MAX_PIECE_BYTES = 65_536;

/** The maximum number of pieces of each stream. It bounds a command that prints single bytes without end. */
const MAX_PIECES = 16_384;

/**
 * The last mebibyte of each stream (stdout and stderr) of a command, in numbered pieces. A piece may grow until `take` returns it for
 * writing. Readers use the numbers as their position.
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
  readonly truncated = { stdout: false, stderr: false };

  add({ stream, bytes }: OutputFrame): void {
    for (let at = 0; at < bytes.length; at += MAX_PIECE_BYTES) {
      const all = Buffer.concat([this.#unfinished[stream], bytes.subarray(at, at + MAX_PIECE_BYTES)]);
      const end = all.length - unfinishedBytes(all);
      this.#unfinished[stream] = all.subarray(end);
      this.#append(stream, all.subarray(0, end));
    }
  }

  /** Ends the output. If the last UTF-8 character is incomplete, the bytes that did arrive are kept. */
  end(): void {
    for (const stream of ['stdout', 'stderr'] as const) this.#append(stream, this.#unfinished[stream]);
  }

  /** Returns the kept pieces that were added since the last call, and the number of the oldest kept piece of each stream. */
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
    if (bytes.length === 0) return;
    const last = this.#pieces.at(-1);
    const isOpen = last?.stream === stream && last.sequence > this.#taken;
    if (isOpen && last.bytes.length + bytes.length <= MAX_PIECE_BYTES) {
      this.#pieces.splice(-1, 1, { ...last, bytes: Buffer.concat([last.bytes, bytes]) });
    } else {
      this.#sequence += 1;
      this.#count[stream] += 1;
      this.#pieces.push({ sequence: this.#sequence, stream, bytes });
    }
    this.#bytes[stream] += bytes.length;
    this.#forget(stream);
  }

  /** Drops the oldest pieces of a stream beyond its last mebibyte or its maximum number of pieces. */
  #forget(stream: OutputStream): void {
    if (this.#bytes[stream] > MAX_KEPT_BYTES || this.#count[stream] > MAX_PIECES) this.truncated[stream] = true;
    for (;;) {
      const index = this.#pieces.findIndex((piece) => piece.stream === stream);
      const length = this.#pieces[index]?.bytes.length ?? 0;
      const isNeeded = this.#bytes[stream] - length < MAX_KEPT_BYTES && this.#count[stream] <= MAX_PIECES;
      if (index === -1 || isNeeded) return;
      this.#pieces.splice(index, 1);
      this.#bytes[stream] -= length;
      this.#count[stream] -= 1;
    }
  }
}

const EMPTY: Buffer = Buffer.alloc(0);

/** Returns the last mebibyte of a stream as text. */
export function textOf(pieces: readonly Piece[], stream: OutputStream): string {
  const all = Buffer.concat(pieces.filter((piece) => piece.stream === stream).map(({ bytes }) => bytes));
  let start = Math.max(0, all.length - MAX_KEPT_BYTES);
  while (start > 0 && isContinuation(all[start])) start += 1;
  return all.subarray(start).toString();
}

/** Counts the bytes of an incomplete UTF-8 character at the end. */
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
