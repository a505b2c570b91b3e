export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
export const CLOSE_BRACKET = 0x5d;
export const COLON = 0x3a;
export const SPACE = 0x20;

export const ZERO = 0x30;
const NINE = 0x39;

/** For chunks below this size, making a DataView costs more than it saves. */
const MIN_VIEWED_BYTES = 512;

/** Returns a DataView of the chunk, with which `endOfText` reads four bytes at once; undefined for a chunk too short to be worth it. */
export function viewOf(chunk: Buffer): DataView | undefined {
  return chunk.length < MIN_VIEWED_BYTES ? undefined : new DataView(chunk.buffer, chunk.byteOffset, chunk.length);
}

/**
 * Finds where the text of a JSON string ends or is interrupted. It checks four bytes as one number, because most bytes of a body are the
 * content of strings. A subtraction sets the highest bit of each sought byte; the first set bit is exact.
 * @returns the offset of the first quote, backslash or control character
 */
export function endOfText(chunk: Uint8Array, view: DataView | undefined, from: number): number {
  const { length } = chunk;
  let at = from;
  if (view !== undefined) {
    const last = length - 4;
    while (at <= last) {
      const four = view.getInt32(at, true);
      // The XOR with 0x02 turns a quote into 0x20, and leaves control characters below 0x20. One subtraction of 0x21 then finds both.
      const low = four ^ 0x02020202;
      const slash = four ^ 0x5c5c5c5c;
      const found = (((low - 0x21212121) & ~low) | ((slash - 0x01010101) & ~slash)) & 0x80808080;
      if (found !== 0) return at + ((31 - Math.clz32(found ^ ((found - 1) | 0))) >> 3);
      at += 4;
    }
  }
  while (at < length && STOPS[chunk[at] as number] === 0) at += 1;
  return at;
}

/** A table that has 1 for each byte that ends or interrupts the text of a JSON string. */
const STOPS = Uint8Array.from({ length: 256 }, (_, byte) => +(byte < SPACE || byte === QUOTE || byte === BACKSLASH));

/** Returns whether a backslash and this byte form a complete escape. */
export function isEscape(byte: number): boolean {
  return ESCAPES[byte] === 1;
}

const ESCAPES = Uint8Array.from({ length: 256 }, (_, byte) => +'"\\/bfnrt'.includes(String.fromCharCode(byte)));

export function isHexDigit(byte: number): boolean {
  const letter = byte | 0x20;
  return isDigit(byte) || (letter >= 0x61 && letter <= 0x66);
}

export function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= NINE;
}
