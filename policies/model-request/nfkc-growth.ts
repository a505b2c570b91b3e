import { BACKSLASH } from '../../core/http/json-bytes';

const LETTER_U = 0x75;
const NINE = 0x39;
const MAX_CODE_POINT = 0x10ffff;
/** The length of an escape such as \\ufdfa, in bytes. */
const ESCAPE = 6;

/** For each character: the number of bytes that NFKC adds, plus 1; 0 if not computed yet. */
const KNOWN = new Uint8Array(MAX_CODE_POINT + 1);

/** Returns by how many bytes NFKC may make the text of a JSON body longer. Characters that become shorter do not count. */
export function nfkcGrowth(chunks: readonly Uint8Array[]): number {
  let growth = 0;
  let character = 0;
  /** How many bytes of the current character are still missing, and how many digits of its escape (as in `\u00e9`) are still missing. */
  let bytes = 0;
  let digits = 0;
  let previous = 0;
  for (const chunk of chunks) {
    const { length } = chunk;
    for (let at = 0; at < length; at += 1) {
      const byte = chunk[at] as number;
      if (byte >= 0xc0) {
        bytes = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
        character = byte & (0x3f >> bytes);
      } else if (byte >= 0x80) {
        character = (character << 6) | (byte & 0x3f);
        bytes -= 1;
        if (bytes === 0) growth += growthOf(character);
      } else if (digits > 0) {
        character = character * 16 + (byte <= NINE ? byte & 0xf : (byte & 0xf) + 9);
        digits -= 1;
        if (digits === 0) growth += Math.max(0, lengthOf(character) + growthOf(character) - ESCAPE);
      } else if (byte === LETTER_U && previous === BACKSLASH) {
        digits = 4;
        character = 0;
      }
      previous = byte === BACKSLASH && previous === BACKSLASH ? 0 : byte;
    }
  }
  return growth;
}

function lengthOf(character: number): number {
  if (character < 0x80) return 1;
  return character < 0x800 ? 2 : 3;
}

function growthOf(character: number): number {
  if (character > MAX_CODE_POINT) return 0;
  const known = KNOWN[character] as number;
  if (known > 0) return known - 1;
  const text = String.fromCodePoint(character);
  // A combining mark may join a letter that other marks had joined. NFKC then writes the other marks as separate characters.
  const separated = character >= 0x31b && character <= 0x331 ? 3 : 0;
  const growth = Math.max(0, Buffer.byteLength(text.normalize('NFKC')) - Buffer.byteLength(text)) + separated;
  KNOWN[character] = growth + 1;
  return growth;
}
