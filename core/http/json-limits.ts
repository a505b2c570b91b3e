import { JsonError, type JsonObserver, type JsonToken } from './json-scanner';

/** How deep the JSON of our own API may be. */
const MOST_DEPTH = 64;

/** How many values it may have in all: members, elements, and the containers themselves. */
const MOST_VALUES = 10_000;

/**
 * Bounds what it costs to parse and check a body of our own API. A scanner tells it of every value while the body
 * arrives, so that nothing is built from a body with too many.
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
