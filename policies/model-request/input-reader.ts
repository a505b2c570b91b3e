import { type GatewayError, invalidParam } from '../../core/base/errors';
import { QUOTE, ZERO } from '../../core/http/json-bytes';
import type { JsonToken } from '../../core/http/json-scanner';

/** How many inputs one call may have. The vendor has the same limit. */
const MAX_INPUTS = 2_048;

/** The depth of the list in `input`. A list of tokens inside it is one deeper. */
const LIST = 2;
const TOKENS = 3;

/** The kind of the items in the list `input`. All items of one list have the same kind. */
type Kind = 'a string' | 'a token' | 'a list of tokens';

/** The length limit of a token number in digits. No vocabulary needs more. */
const MAX_DIGITS = 10;

/** Reads the `input` of an embeddings call while it arrives: texts, or token numbers. */
export class InputReader {
  /** How many texts and lists of tokens the body contains. The vendor reads each of them up to the context window. */
  count = 0;
  /** How many tokens the body contains as numbers. */
  tokens = 0;
  /** The size of the lists of token numbers in the body, in bytes. */
  tokenBytes = 0;
  fault: GatewayError | undefined;

  #kind: Kind | undefined;
  /** How many items the list `input` has so far, and how many tokens the current list of tokens has. */
  #items = 0;
  #inner = 0;
  /** The position in the body at which the list of each depth begins. */
  readonly #starts: number[] = [];

  open(depth: number, isObject: boolean, start: number): void {
    this.#starts[depth] = start;
    if (isObject) this.#invalid(depth === TOKENS ? `input[${this.#items}]` : this.#placeIn(depth - 1), EXPECTED);
    else if (depth === TOKENS) this.#beginItem('a list of tokens');
    else if (depth > TOKENS) this.#invalid(this.#placeIn(depth - 1), 'expected a token');
  }

  close(depth: number, end: number): void {
    if (depth === TOKENS || (depth === LIST && this.#kind === 'a token'))
      this.tokenBytes += end - (this.#starts[depth] as number);
    if (depth === TOKENS && this.#inner === 0) this.#invalid(`input[${this.#items - 1}]`, 'is empty');
    if (depth === LIST && this.#items === 0) this.#invalid('input', 'is empty');
  }

  scalar(depth: number, firstByte: number, token: JsonToken): void {
    if (this.fault !== undefined) return;
    if (depth < LIST) this.#text('input', firstByte, token);
    else if (depth === TOKENS) this.#token(token);
    else if (firstByte === ZERO) {
      this.#beginItem('a token');
      this.#token(token);
    } else {
      this.#beginItem('a string');
      this.#text(this.#placeIn(depth), firstByte, token);
    }
  }

  #beginItem(kind: Kind): void {
    this.#kind ??= kind;
    if (kind !== this.#kind)
      this.#invalid(`input[${this.#items}]`, `expected ${this.#kind}, as the items before it are`);
    this.#items += 1;
    this.#inner = 0;
    if (kind === 'a token') this.count = 1;
    else if (kind === 'a list of tokens') this.#addInput();
  }

  #text(place: string, firstByte: number, { start, end }: JsonToken): void {
    if (firstByte !== QUOTE) this.#invalid(place, EXPECTED);
    else if (end - start === 2) this.#invalid(place, 'is empty');
    this.#addInput();
  }

  #token(token: JsonToken): void {
    const digits = token.end - token.start;
    if (!token.isNatural || digits > MAX_DIGITS) this.#invalid(this.#placeIn(TOKENS), EXPECTED_TOKEN);
    this.#inner += 1;
    this.tokens += 1;
  }

  #addInput(): void {
    this.count += 1;
    if (this.count > MAX_INPUTS) this.#invalid('input', `expected at most ${MAX_INPUTS} inputs`);
  }

  /** Returns the path of the current value in a container of this depth. */
  #placeIn(depth: number): string {
    if (depth < LIST) return 'input';
    if (this.#kind !== 'a list of tokens' || depth === LIST) return `input[${Math.max(this.#items - 1, 0)}]`;
    return `input[${this.#items - 1}][${this.#inner}]`;
  }

  #invalid(param: string, problem: string): void {
    this.fault ??= invalidParam(param, problem);
  }
}

const EXPECTED = 'expected a string, an array of strings, an array of tokens, or an array of such arrays';
const EXPECTED_TOKEN = 'expected a token, which is an integer ≥ 0';
