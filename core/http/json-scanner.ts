/** The token that a scanner has just read. It is valid only during the observer's call. */
export interface JsonToken {
  readonly start: number;
  readonly end: number;
  /** Whether it is a number that consists of digits only. This is cheaper than reading `text`. */
  readonly isNatural: boolean;
  /** The string without quotes and escapes, or the characters of a number or literal; undefined above 4 KiB. */
  text(): string | undefined;
  /** Returns whether it is the string or key `word`, with or without escapes. This is cheaper than reading `text`. */
  is(word: Buffer): boolean;
  /** Returns whether one of the first `within` bytes of its raw text is `byte`. This is cheaper than reading `head`. */
  has(byte: number, within: number): boolean;
  /** Returns at most the first `bytes` (up to 4 KiB) of its raw text, with quotes and escapes. */
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
  /** `firstByte` identifies the kind of value: `"`, `0` (any number), `t`, `f` or `n`. */
  scalar(depth: number, firstByte: number, token: JsonToken): void;
}

/** The text is not JSON, or it is nested too deeply. */
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

/** The longest token whose text the scanner keeps. */
export const MAX_TOKEN_TEXT_BYTES = 4_096;

export const QUOTE = 0x22;
export const OPEN_BRACE = 0x7b;
export const OPEN_BRACKET = 0x5b;

export const BACKSLASH = 0x5c;
const SLASH = 0x2f;
const CLOSE_BRACE = 0x7d;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;
export const COLON = 0x3a;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;

/** States between tokens: what may come next. */
const VALUE = 0;
const VALUE_OR_CLOSE = 1;
const KEY = 2;
const KEY_OR_CLOSE = 3;
const AFTER_KEY = 4;
const AFTER_VALUE = 5;
const END = 6;
const STRING = 7;
const ESCAPE = 8;
const UNICODE = 9;
const LITERAL = 10;
const NUMBER_MINUS = 11;
const NUMBER_ZERO = 12;
const NUMBER_INTEGER = 13;
const NUMBER_POINT = 14;
const NUMBER_FRACTION = 15;
const NUMBER_E = 16;
const NUMBER_E_SIGN = 17;
const NUMBER_EXPONENT = 18;

const LONGEST_ESCAPE = 6;

const NOTHING: Buffer = Buffer.alloc(0);
const LITERALS: Readonly<Record<number, Buffer>> = {
  116: Buffer.from('true'),
  102: Buffer.from('false'),
  110: Buffer.from('null'),
};

/**
 * Reads JSON while it arrives, without building values. It is strict (RFC 8259): every parser accepts what it accepts. It does
 * not check whether strings are valid UTF-8. A value may be split at any byte. Memory does not grow with the length of the text:
 * of a token that began in an earlier chunk, the scanner keeps the first 4 KiB.
 */
export class JsonScanner implements JsonToken {
  start = 0;
  end = 0;
  isNatural = false;

  /** One entry for each open container: whether it is an object. */
  readonly #open: boolean[] = [];
  #state = VALUE;
  #chunk = NOTHING;
  #base = 0;
  /** The part of the current token that was in earlier chunks. */
  #carried = NOTHING;
  #isKey = false;
  #hasEscapes = false;
  #hexDigits = 0;
  #literal = NOTHING;

  constructor(private readonly observer: JsonObserver) {}

  /**
   * Reads the next chunk.
   * @throws {JsonError} at the first byte that is not allowed there.
   */
  feed(chunk: Buffer): void {
    this.#chunk = chunk;
    const length = chunk.length;
    let at = 0;
    while (at < length) {
      if (this.#state >= STRING) {
        at = this.#continueToken(at);
        continue;
      }
      const byte = chunk[at] as number;
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) this.#structure(byte, at);
      at += 1;
    }
    if (this.#state >= STRING) this.#carry();
    this.#base += length;
    this.#chunk = NOTHING;
  }

  /**
   * Ends the text.
   * @throws {JsonError} if the text is incomplete.
   */
  finish(): void {
    if (this.#state >= NUMBER_MINUS && this.#open.length === 0) this.#endNumber(0);
    if (this.#state !== END) throw new JsonError(this.#base === 0 ? 'the JSON text is empty' : 'JSON ends', this.#base);
  }

  text(): string | undefined {
    const bytes = this.#bytes(MAX_TOKEN_TEXT_BYTES);
    if (bytes.length < this.end - this.start) return undefined;
    if (bytes[0] !== QUOTE) return bytes.toString('latin1');
    if (!this.#hasEscapes) return bytes.toString('utf8', 1, bytes.length - 1);
    return JSON.parse(bytes.toString('utf8')) as string;
  }

  is(word: Buffer): boolean {
    const inChunk = this.start - this.#base;
    const length = this.end - this.start - 2;
    // An escape takes six bytes at most, so a token of another length need not be decoded.
    if (length < word.length || length > word.length * LONGEST_ESCAPE) return false;
    if (this.#hasEscapes || inChunk < 0) return this.text() === word.toString();
    if (length !== word.length) return false;
    for (let at = 0; at < word.length; at += 1) if (this.#chunk[inChunk + 1 + at] !== word[at]) return false;
    return true;
  }

  has(byte: number, within: number): boolean {
    const from = this.start - this.#base;
    if (from < 0) return this.#bytes(within).includes(byte);
    const to = Math.min(from + within, this.end - this.#base);
    for (let at = from; at < to; at += 1) if (this.#chunk[at] === byte) return true;
    return false;
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

  /** Keeps the current token's bytes of this chunk. */
  #carry(): void {
    const room = MAX_TOKEN_TEXT_BYTES - this.#carried.length;
    if (room <= 0) return;
    const from = Math.max(this.start - this.#base, 0);
    this.#carried = Buffer.concat([this.#carried, this.#chunk.subarray(from, from + room)]);
  }

  /** Reads one byte between tokens that is not white space. */
  #structure(byte: number, at: number): void {
    switch (this.#state) {
      case AFTER_VALUE:
        if (byte === COMMA) this.#state = this.#open[this.#open.length - 1] ? KEY : VALUE;
        else this.#close(byte, at);
        return;
      case AFTER_KEY:
        if (byte !== COLON) throw this.#unexpected(byte, at);
        this.#state = VALUE;
        return;
      case KEY_OR_CLOSE:
      case KEY:
        if (byte === QUOTE) this.#beginString(at, true);
        else if (this.#state === KEY_OR_CLOSE) this.#close(byte, at);
        else throw this.#unexpected(byte, at);
        return;
      case VALUE_OR_CLOSE:
        if (byte === CLOSE_BRACKET) this.#close(byte, at);
        else this.#beginValue(byte, at);
        return;
      case VALUE:
        this.#beginValue(byte, at);
        return;
      default:
        throw this.#unexpected(byte, at);
    }
  }

  #beginValue(byte: number, at: number): void {
    if (byte === QUOTE) this.#beginString(at, false);
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#openContainer(byte === OPEN_BRACE, at);
    else this.#beginBareToken(byte, at);
  }

  /** Begins a number or a literal. */
  #beginBareToken(byte: number, at: number): void {
    this.#beginToken(at);
    this.isNatural = byte >= ZERO && byte <= NINE;
    if (byte === MINUS) this.#state = NUMBER_MINUS;
    else if (byte === ZERO) this.#state = NUMBER_ZERO;
    else if (byte > ZERO && byte <= NINE) this.#state = NUMBER_INTEGER;
    else {
      const literal = LITERALS[byte];
      if (literal === undefined) throw this.#unexpected(byte, at);
      this.#literal = literal;
      this.#state = LITERAL;
    }
  }

  #beginToken(at: number): void {
    this.start = this.#base + at;
    this.#carried = NOTHING;
  }

  #beginString(at: number, isKey: boolean): void {
    this.#beginToken(at);
    this.isNatural = false;
    this.#isKey = isKey;
    this.#hasEscapes = false;
    this.#state = STRING;
  }

  #openContainer(isObject: boolean, at: number): void {
    if (this.#open.length === MAX_JSON_DEPTH) {
      throw new JsonError(`JSON is deeper than ${MAX_JSON_DEPTH} levels`, this.#base + at);
    }
    this.#beginToken(at);
    this.end = this.start + 1;
    this.#open.push(isObject);
    this.#state = isObject ? KEY_OR_CLOSE : VALUE_OR_CLOSE;
    this.observer.open(this.#open.length, isObject, this);
  }

  #close(byte: number, at: number): void {
    const isObject = this.#open[this.#open.length - 1];
    if (byte !== (isObject ? CLOSE_BRACE : CLOSE_BRACKET)) throw this.#unexpected(byte, at);
    this.#beginToken(at);
    this.end = this.start + 1;
    this.observer.close(this.#open.length, this);
    this.#open.pop();
    this.#state = this.#open.length === 0 ? END : AFTER_VALUE;
  }

  /** Continues inside a token. Returns the offset of the next byte to read. */
  #continueToken(at: number): number {
    switch (this.#state) {
      case STRING:
        return this.#continueString(at);
      case ESCAPE:
        return this.#escape(at);
      case UNICODE:
        return this.#unicode(at);
      case LITERAL:
        return this.#continueLiteral(at);
      default:
        return this.#continueNumber(at);
    }
  }

  /** Most bytes of a body are the content of strings. */
  #continueString(from: number): number {
    const chunk = this.#chunk;
    const at = endOfText(chunk, from);
    if (at === chunk.length) return at;
    const byte = chunk[at] as number;
    if (byte === QUOTE) this.#endString(at);
    else if (byte === BACKSLASH) this.#state = ESCAPE;
    else throw new JsonError('JSON has a control character inside a string', this.#base + at);
    return at + 1;
  }

  #endString(at: number): void {
    this.end = this.#base + at + 1;
    if (this.#isKey) {
      this.#state = AFTER_KEY;
      this.observer.key(this.#open.length, this);
    } else {
      this.#endScalar(QUOTE);
    }
  }

  #endScalar(firstByte: number): void {
    this.#state = this.#open.length === 0 ? END : AFTER_VALUE;
    this.observer.scalar(this.#open.length, firstByte, this);
  }

  #escape(at: number): number {
    const byte = this.#chunk[at] as number;
    this.#hasEscapes = true;
    this.#hexDigits = 0;
    if (byte === 0x75) this.#state = UNICODE;
    else if (isEscape(byte)) this.#state = STRING;
    else throw new JsonError('JSON has an unknown escape', this.#base + at);
    return at + 1;
  }

  #unicode(at: number): number {
    if (!isHexDigit(this.#chunk[at] as number)) throw new JsonError('JSON has a broken \\u escape', this.#base + at);
    this.#hexDigits += 1;
    if (this.#hexDigits === 4) this.#state = STRING;
    return at + 1;
  }

  #continueLiteral(at: number): number {
    const place = this.#base + at - this.start;
    const byte = this.#chunk[at] as number;
    if (byte !== this.#literal[place]) throw this.#unexpected(byte, at);
    if (place === this.#literal.length - 1) {
      this.end = this.#base + at + 1;
      this.#endScalar(this.#literal[0] as number);
    }
    return at + 1;
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
    const isWhole =
      state === NUMBER_ZERO || state === NUMBER_INTEGER || state === NUMBER_FRACTION || state === NUMBER_EXPONENT;
    if (!isWhole) throw new JsonError('JSON has a broken number', this.#base + at);
    this.end = this.#base + at;
    this.isNatural &&= state === NUMBER_ZERO || state === NUMBER_INTEGER;
    this.#endScalar(ZERO);
  }

  #unexpected(byte: number, at: number): JsonError {
    const shown = byte > 0x20 && byte < 0x7f ? `"${String.fromCharCode(byte)}"` : `byte 0x${byte.toString(16)}`;
    return new JsonError(`JSON does not allow ${shown}`, this.#base + at);
  }
}

/** Reads a whole text, in one piece or several. Returns false if it is not JSON. */
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

/** 1 for each byte that ends or interrupts the text of a string. */
const STOPS = Uint8Array.from({ length: 256 }, (_, byte) => +(byte < 0x20 || byte === QUOTE || byte === BACKSLASH));

/**
 * The inner loop. It looks at four bytes at once, which halves its time.
 * @returns the offset of the first quote, backslash or control character
 */
function endOfText(chunk: Uint8Array, from: number): number {
  const { length } = chunk;
  let at = from;
  while (at + 3 < length && !(stops(chunk, at) | stops(chunk, at + 1) | stops(chunk, at + 2) | stops(chunk, at + 3)))
    at += 4;
  while (at < length && !stops(chunk, at)) at += 1;
  return at;
}

function stops(chunk: Uint8Array, at: number): number {
  return STOPS[chunk[at] as number] as number;
}

function isEscape(byte: number): boolean {
  switch (byte) {
    case QUOTE:
    case BACKSLASH:
    case SLASH:
    case 0x62: // b
    case 0x66: // f
    case 0x6e: // n
    case 0x72: // r
    case 0x74: // t
      return true;
    default:
      return false;
  }
}

function isHexDigit(byte: number): boolean {
  const letter = byte | 0x20;
  return (byte >= ZERO && byte <= NINE) || (letter >= 0x61 && letter <= 0x66);
}

/** Returns the state of a number after one more byte; undefined if that byte no longer belongs to the number. */
function nextInNumber(state: number, byte: number): number | undefined {
  if (byte >= ZERO && byte <= NINE) return afterDigit(state, byte);
  if (byte === 0x2e) return state === NUMBER_ZERO || state === NUMBER_INTEGER ? NUMBER_POINT : undefined;
  if ((byte | 0x20) === 0x65) {
    return state === NUMBER_ZERO || state === NUMBER_INTEGER || state === NUMBER_FRACTION ? NUMBER_E : undefined;
  }
  if (byte === MINUS || byte === 0x2b) return state === NUMBER_E ? NUMBER_E_SIGN : undefined;
  return undefined;
}

function afterDigit(state: number, byte: number): number | undefined {
  switch (state) {
    case NUMBER_MINUS:
      return byte === ZERO ? NUMBER_ZERO : NUMBER_INTEGER;
    case NUMBER_ZERO:
      return undefined;
    case NUMBER_INTEGER:
      return NUMBER_INTEGER;
    case NUMBER_POINT:
    case NUMBER_FRACTION:
      return NUMBER_FRACTION;
    default:
      return NUMBER_EXPONENT;
  }
}
