import { JsonError, type JsonObserver, type JsonToken } from './json-scanner';

/** The deepest nesting of JSON that our own API accepts. */
const MOST_DEPTH = 64;

/** The most values in one body of our own API: members, elements and containers. */
const MOST_VALUES = 10_000;

/**
 * Bounds the cost of parsing and checking a body of our own API. A scanner reports every value while the body arrives, so that a
 * body with too many values is rejected before anything is built from it.
 */
export class JsonLimits implements JsonObserver {
  #values = 0;

  open(depth: number, _isObject: boolean, token: JsonToken): void {
    if (depth > MOST_DEPTH) throw new JsonError(`JSON is deeper than ${MOST_DEPTH} levels`, token.start);
    this.#count(token);
  }

  scalar(_depth: number, _firstByte: number, token: JsonToken): void {
    this.#count(token);
  }

  key(): void {}

  close(): void {}

  #count(token: JsonToken): void {
    this.#values += 1;
    if (this.#values > MOST_VALUES) throw new JsonError(`JSON has more than ${MOST_VALUES} values`, token.start);
  }
}
