/**
 * A short text in JSON, such as a member's name, a type or a role. Almost every body contains the same few texts. The process therefore
 * creates one object for each and finds it again by the text's bytes. Texts with which the code compares are compared by object identity.
 */
export class JsonWord {
  isKnown = false;

  /** @param bytes the text as JSON contains it, without quotes and escapes */
  constructor(
    readonly text: string,
    readonly bytes: Uint8Array,
  ) {}

  isAt(chunk: Uint8Array, from: number, length: number): boolean {
    const { bytes } = this;
    if (bytes.length !== length) return false;
    for (let at = 0; at < length; at += 1) if (bytes[at] !== chunk[from + at]) return false;
    return true;
  }
}

/** The longest text, in bytes, that is cached as a `JsonWord`. A longer text gets a new object each time. */
const MAX_WORD_BYTES = 64;

const KNOWN = new Map<string, JsonWord>();

/** The number of positions in the cache of words, and in how many of them one word may be. A new word never takes the position of a word from `knownWord`. */
const PLACES = 2_048;
const PLACES_OF_ONE = 4;

const KEPT: (JsonWord | undefined)[] = new Array(PLACES + PLACES_OF_ONE).fill(undefined);

/** Returns the only `JsonWord` object for a text with which the code compares. The cache never replaces this object. */
export function knownWord(text: string): JsonWord {
  const made = KNOWN.get(text);
  if (made !== undefined) return made;
  const bytes = Buffer.from(text);
  const word = wordIn(bytes, 0, bytes.length);
  word.isKnown = true;
  KNOWN.set(text, word);
  return word;
}

/** Returns the `JsonWord` for a text that had escapes or was split over chunks. */
export function wordOf(text: string): JsonWord {
  return KNOWN.get(text) ?? new JsonWord(text, Buffer.from(text));
}

const EMPTY = new JsonWord('', new Uint8Array());

/** Returns the `JsonWord` for the bytes of a chunk from `from` to `to`, which exclude the quotes. The text has no escapes. */
export function wordIn(chunk: Buffer, from: number, to: number): JsonWord {
  const length = to - from;
  if (length === 0) return EMPTY;
  if (length > MAX_WORD_BYTES) return new JsonWord(chunk.toString('utf8', from, to), chunk.subarray(from, to));
  const place = placeOf(chunk, from, length);
  for (let at = place; at < place + PLACES_OF_ONE; at += 1) {
    const word = KEPT[at];
    if (word?.isAt(chunk, from, length) === true) return word;
  }
  const text = chunk.toString('utf8', from, to);
  const known = KNOWN.get(text);
  if (known !== undefined) return known;
  // For a word of at most 64 bytes, copying in this loop is cheaper than copying with a method.
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += 1) bytes[at] = chunk[from + at] as number;
  return keep(new JsonWord(text, bytes), place);
}

function placeOf(bytes: Uint8Array, from: number, length: number): number {
  const first = bytes[from] as number;
  const middle = bytes[from + (length >> 1)] as number;
  const last = bytes[from + length - 1] as number;
  return ((((first * 31 + middle) * 31 + last) * 31 + length) & (PLACES - 1)) >>> 0;
}

function keep(word: JsonWord, place: number): JsonWord {
  let to = -1;
  for (let at = place; at < place + PLACES_OF_ONE; at += 1) {
    const kept = KEPT[at];
    if (kept === undefined) {
      to = at;
      break;
    }
    if (to === -1 && !kept.isKnown) to = at;
  }
  if (to !== -1) KEPT[to] = word;
  return word;
}
