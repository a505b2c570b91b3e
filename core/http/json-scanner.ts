import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  endOfText,
  isDigit,
  isEscape,
  isHexDigit,
  OPEN_BRACE,
  QUOTE,
  viewOf,
  ZERO,
} from './json-bytes';
import { beginNumber, isInteger, isWholeNumber, NUMBER_MINUS, nextInNumber } from './json-numbers';
import { type JsonWord, wordIn, wordOf } from './json-words';

/** The token that a scanner has just read. It is valid only during the call of the observer. */
export interface JsonToken {
  readonly start: number;
  readonly end: number;
  /** Whether the token is a number of digits only. Reading this is cheaper than reading `text`. */
  readonly isNatural: boolean;
  /** The string without quotes and escapes, or the characters of a number or literal; undefined above 4 KiB. */
  text(): string | undefined;
  /** Returns the string or key as a `JsonWord`, an object that is usually cached; undefined above 4 KiB. */
  word(): JsonWord | undefined;
  /** Returns whether the token is the string or key `word`, with or without escapes. This is cheaper than `word()`. */
  is(word: JsonWord): boolean;
  /** Returns a byte of the token's raw text; undefined after its end, and from byte 4,097 on if the token began in an earlier chunk. */
  byteAt(offset: number): number | undefined;
  /** Returns at most the first `bytes` (up to 4 KiB) of the token's raw text, with quotes and escapes. */
  head(bytes: number): string;
}

/**
 * Receives what a scanner reads. `depth` is the depth of the container that holds the token: 1 for members of the root, 0 outside
 * of the root. For `open` and `close` it is the depth of the container itself.
 */
export interface JsonObserver {
  open(depth: number, isObject: boolean, token: JsonToken): void;
  close(depth: number, token: JsonToken): void;
  key(depth: number, token: JsonToken): void;
  /** Receives a string, number or literal. `firstByte` identifies its kind: `"`, `0` (any number), `t`, `f` or `n`. */
  scalar(depth: number, firstByte: number, token: JsonToken): void;
}

/** The error for a text that is not JSON or is nested too deeply. */
export class JsonError extends Error {
  override readonly name = 'JsonError';

  constructor(
    readonly reason: string,
    readonly offset: number,
  ) {
    super(`${reason} at byte ${offset}`);
  }
}

export const MAX_JSON_DEPTH = 256;

/** The size in bytes up to which the scanner keeps the text of a token. */
export const MAX_TOKEN_TEXT_BYTES = 4_096;

/** States of the scanner between tokens. Each state says which token may come next. */
const VALUE = 0;
const VALUE_OR_CLOSE = 1;
const KEY = 2;
const KEY_OR_CLOSE = 3;
const AFTER_KEY = 4;
const AFTER_VALUE = 5;
const END = 6;
/** States of the scanner within a token; json-numbers.ts has the states within a number. */
const STRING = 7;
const ESCAPE = 8;
const UNICODE = 9;
const LITERAL = 10;

const MAX_ESCAPE_LENGTH = 6;
const LETTER_U = 0x75;

const NOTHING: Buffer = Buffer.alloc(0);
const LITERALS: Readonly<Record<number, Buffer>> = {
  116: Buffer.from('true'),
  102: Buffer.from('false'),
  110: Buffer.from('null'),
};

/**
 * Scans JSON while it arrives, without building values. The scanner is strict (RFC 8259): every JSON parser accepts each text that the
 * scanner accepts. It does not check whether strings are valid UTF-8. A value may be split over chunks at any byte. Memory does not grow
 * with the text, because the scanner keeps at most the first 4 KiB of a token from earlier chunks.
 */
export class JsonScanner implements JsonToken {
  start = 0;
  end = 0;
  isNatural = false;

  /** For each depth, whether the open container there is a JSON object and not an array. */
  readonly #isObject: boolean[] = [false];
  #depth = 0;
  #state = VALUE;
  #chunk = NOTHING;
  #view: DataView | undefined;
  #base = 0;
  /** The bytes of the current token that arrived in earlier chunks. */
  #carried = NOTHING;
  #isKey = false;
  #hasEscapes = false;
  #hexDigits = 0;
  #literal = NOTHING;

  constructor(private readonly observer: JsonObserver) {}

  /**
   * Scans the next chunk.
   * @throws {JsonError} at the first byte that is not allowed in its position.
   */
  feed(chunk: Buffer): void {
    this.#chunk = chunk;
    this.#view = viewOf(chunk);
    const length = chunk.length;
    this.#read(this.#state >= STRING ? this.#continueToken(0) : 0);
    if (this.#state >= STRING) this.#carry();
    this.#base += length;
    this.#chunk = NOTHING;
  }

  /**
   * Marks the end of the text.
   * @throws {JsonError} if the text is incomplete.
   */
  finish(): void {
    if (this.#state >= NUMBER_MINUS && this.#depth === 0) this.#endNumber(0);
    if (this.#state !== END) throw new JsonError(this.#base === 0 ? 'the JSON text is empty' : 'JSON ends', this.#base);
  }

  text(): string | undefined {
    const inChunk = this.start - this.#base;
    const length = this.end - this.start;
    if (length > MAX_TOKEN_TEXT_BYTES) return undefined;
    if (inChunk >= 0 && this.#chunk[inChunk] === QUOTE && !this.#hasEscapes)
      return this.#chunk.toString('utf8', inChunk + 1, inChunk + length - 1);
    const bytes = this.#bytes(length);
    if (bytes[0] !== QUOTE) return bytes.toString('latin1');
    if (!this.#hasEscapes) return bytes.toString('utf8', 1, length - 1);
    return JSON.parse(bytes.toString('utf8')) as string;
  }

  word(): JsonWord | undefined {
    const inChunk = this.start - this.#base;
    const isShort = this.end - this.start <= MAX_TOKEN_TEXT_BYTES;
    if (isShort && inChunk >= 0 && !this.#hasEscapes)
      return wordIn(this.#chunk, inChunk + 1, this.end - this.#base - 1);
    const text = this.text();
    return text === undefined ? undefined : wordOf(text);
  }

  is(word: JsonWord): boolean {
    const inChunk = this.start - this.#base;
    const length = this.end - this.start - 2;
    const wanted = word.bytes.length;
    // An escape has at most `MAX_ESCAPE_LENGTH` bytes. A token whose length cannot match the sought word is therefore not decoded.
    if (length < wanted || length > wanted * MAX_ESCAPE_LENGTH) return false;
    if (this.#hasEscapes || inChunk < 0) return this.text() === word.text;
    return length === wanted && word.isAt(this.#chunk, inChunk + 1, length);
  }

  byteAt(offset: number): number | undefined {
    const at = this.start + offset;
    if (at >= this.end) return undefined;
    const inChunk = at - this.#base;
    return this.start >= this.#base ? this.#chunk[inChunk] : this.#byteOfCarried(offset, inChunk);
  }

  #byteOfCarried(offset: number, inChunk: number): number | undefined {
    if (offset < this.#carried.length) return this.#carried[offset];
    return inChunk >= 0 ? this.#chunk[inChunk] : undefined;
  }

  head(bytes: number): string {
    return this.#bytes(bytes).toString('utf8');
  }

  #bytes(limit: number): Buffer {
    const length = Math.min(this.end - this.start, limit);
    const inChunk = this.start - this.#base;
    if (inChunk >= 0) return this.#chunk.subarray(inChunk, inChunk + length);
    const missing = length - this.#carried.length;
    if (missing <= 0) return this.#carried.subarray(0, length);
    return Buffer.concat([this.#carried, this.#chunk.subarray(0, missing)]);
  }

  /** Keeps the bytes of an incomplete token until the next chunk arrives. */
  #carry(): void {
    const room = MAX_TOKEN_TEXT_BYTES - this.#carried.length;
    if (room <= 0) return;
    const from = Math.max(this.start - this.#base, 0);
    this.#carried = Buffer.concat([this.#carried, this.#chunk.subarray(from, from + room)]);
  }

  /** Scans the chunk from an offset that lies between two tokens. */
  #read(from: number): void {
    const chunk = this.#chunk;
    const { length } = chunk;
    let at = from;
    while (at < length) {
      const byte = chunk[at] as number;
      switch (byte) {
        case 0x22: // "
          if (this.#state > KEY_OR_CLOSE) throw this.#unexpected(byte, at);
          at = this.#string(at);
          break;
        case 0x2c: // ,
          if (this.#state !== AFTER_VALUE) throw this.#unexpected(byte, at);
          this.#state = this.#isObject[this.#depth] ? KEY : VALUE;
          at += 1;
          break;
        case 0x3a: // :
          if (this.#state !== AFTER_KEY) throw this.#unexpected(byte, at);
          this.#state = VALUE;
          at += 1;
          break;
        case 0x7b: // {
        case 0x5b: // [
          if (this.#state > VALUE_OR_CLOSE) throw this.#unexpected(byte, at);
          this.#openContainer(byte === OPEN_BRACE, at);
          at += 1;
          break;
        case 0x7d: // }
        case 0x5d: // ]
          this.#close(byte, at);
          at += 1;
          break;
        case 0x20:
        case 0x0a:
        case 0x0d:
        case 0x09:
          at += 1;
          break;
        default:
          if (this.#state > VALUE_OR_CLOSE) throw this.#unexpected(byte, at);
          at = this.#bareToken(byte, at);
      }
    }
  }

  #string(at: number): number {
    this.#beginToken(at);
    this.isNatural = false;
    this.#isKey = this.#state >= KEY;
    this.#hasEscapes = false;
    return this.#continueString(at + 1);
  }

  #beginToken(at: number): void {
    this.start = this.#base + at;
    this.#carried = NOTHING;
  }

  /** Starts scanning a number or a literal. Returns the offset after the scanned bytes. */
  #bareToken(byte: number, at: number): number {
    this.#beginToken(at);
    this.isNatural = isDigit(byte);
    const literal = LITERALS[byte];
    const state = literal === undefined ? beginNumber(byte) : LITERAL;
    if (state === undefined) throw this.#unexpected(byte, at);
    this.#literal = literal ?? NOTHING;
    this.#state = state;
    return this.#continueToken(at + 1);
  }

  #openContainer(isObject: boolean, at: number): void {
    if (this.#depth === MAX_JSON_DEPTH) {
      throw new JsonError(`JSON is nested deeper than ${MAX_JSON_DEPTH} levels`, this.#base + at);
    }
    this.#beginToken(at);
    this.end = this.start + 1;
    this.#depth += 1;
    this.#isObject[this.#depth] = isObject;
    this.#state = isObject ? KEY_OR_CLOSE : VALUE_OR_CLOSE;
    this.observer.open(this.#depth, isObject, this);
  }

  #close(byte: number, at: number): void {
    const isObject = this.#isObject[this.#depth];
    const mayClose = this.#state === AFTER_VALUE || this.#state === (isObject ? KEY_OR_CLOSE : VALUE_OR_CLOSE);
    if (!mayClose || byte !== (isObject ? CLOSE_BRACE : CLOSE_BRACKET)) throw this.#unexpected(byte, at);
    this.#beginToken(at);
    this.end = this.start + 1;
    this.observer.close(this.#depth, this);
    this.#depth -= 1;
    this.#state = this.#depth === 0 ? END : AFTER_VALUE;
  }

  /** Continues scanning inside a token. Returns the offset of the first byte after it, or the end of the chunk. */
  #continueToken(from: number): number {
    const isEscaped = this.#state === ESCAPE || this.#state === UNICODE;
    const at = isEscaped ? this.#continueEscape(from) : from;
    switch (this.#state) {
      case STRING:
        return this.#continueString(at);
      case ESCAPE:
      case UNICODE:
        return at;
      case LITERAL:
        return this.#continueLiteral(at);
      default:
        return this.#continueNumber(at);
    }
  }

  #continueString(from: number): number {
    const chunk = this.#chunk;
    const { length } = chunk;
    let at = from;
    for (;;) {
      at = endOfText(chunk, this.#view, at);
      if (at === length) {
        this.#state = STRING;
        return at;
      }
      const byte = chunk[at] as number;
      at += 1;
      if (byte === QUOTE) {
        this.#endString(at);
        return at;
      }
      if (byte !== BACKSLASH) throw new JsonError('JSON has a control character inside a string', this.#base + at - 1);
      this.#hasEscapes = true;
      if (at < length && isEscape(chunk[at] as number)) {
        at += 1;
        continue;
      }
      this.#state = ESCAPE;
      at = this.#continueEscape(at);
      if (this.#state !== STRING) return at;
    }
  }

  #endString(at: number): void {
    this.end = this.#base + at;
    if (this.#isKey) {
      this.#state = AFTER_KEY;
      this.observer.key(this.#depth, this);
    } else {
      this.#endScalar(QUOTE);
    }
  }

  #endScalar(firstByte: number): void {
    this.#state = this.#depth === 0 ? END : AFTER_VALUE;
    this.observer.scalar(this.#depth, firstByte, this);
  }

  #continueEscape(from: number): number {
    const chunk = this.#chunk;
    let at = from;
    for (; at < chunk.length && this.#state !== STRING; at += 1) {
      const byte = chunk[at] as number;
      if (this.#state === UNICODE) this.#hexDigit(byte, at);
      else if (byte === LETTER_U) {
        this.#state = UNICODE;
        this.#hexDigits = 0;
      } else if (isEscape(byte)) this.#state = STRING;
      else throw new JsonError('JSON has an invalid escape sequence', this.#base + at);
    }
    return at;
  }

  #hexDigit(byte: number, at: number): void {
    if (!isHexDigit(byte)) throw new JsonError('JSON has an invalid \\u escape', this.#base + at);
    this.#hexDigits += 1;
    if (this.#hexDigits === 4) this.#state = STRING;
  }

  #continueLiteral(from: number): number {
    const chunk = this.#chunk;
    for (let at = from; at < chunk.length; at += 1) {
      const place = this.#base + at - this.start;
      const byte = chunk[at] as number;
      if (byte !== this.#literal[place]) throw this.#unexpected(byte, at);
      if (place < this.#literal.length - 1) continue;
      this.end = this.#base + at + 1;
      this.#endScalar(this.#literal[0] as number);
      return at + 1;
    }
    return chunk.length;
  }

  #continueNumber(from: number): number {
    const chunk = this.#chunk;
    let at = from;
    while (at < chunk.length) {
      const next = nextInNumber(this.#state, chunk[at] as number);
      if (next === undefined) {
        this.#endNumber(at);
        return at;
      }
      this.#state = next;
      at += 1;
    }
    return at;
  }

  #endNumber(at: number): void {
    const state = this.#state;
    if (!isWholeNumber(state)) throw new JsonError('JSON has an invalid number', this.#base + at);
    this.end = this.#base + at;
    this.isNatural &&= isInteger(state);
    this.#endScalar(ZERO);
  }

  #unexpected(byte: number, at: number): JsonError {
    const shown = byte > 0x20 && byte < 0x7f ? `"${String.fromCharCode(byte)}"` : `byte 0x${byte.toString(16)}`;
    return new JsonError(`JSON has an unexpected ${shown}`, this.#base + at);
  }
}

/** Scans a complete text in one chunk or several. Returns false if it is not JSON. */
export function scanWhole(chunks: readonly Buffer[], observer: JsonObserver): boolean {
  const scanner = new JsonScanner(observer);
  try {
    for (const chunk of chunks) scanner.feed(chunk);
    scanner.finish();
    return true;
  } catch (error) {
    if (error instanceof JsonError) return false;
    throw error;
  }
}
