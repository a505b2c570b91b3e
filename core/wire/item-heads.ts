import { JsonError, type JsonObserver, JsonScanner, type JsonToken } from '../http/json-scanner';

/** The members of an item, and of the object in its `action`, that are kept. */
const KEPT = ['type', 'id', 'container_id'].map((word) => Buffer.from(word));
const ACTION = Buffer.from('action');

/** Depths: of an item of the list, and of an object in one. */
const ITEM = 2;
const INNER = 3;

type Head = Record<string, unknown>;

/**
 * Returns the kinds of the items of a list without their content, because the list may be too large to be parsed; undefined if it
 * is no list.
 */
export function itemHeads(list: Buffer): readonly Head[] | undefined {
  const heads = new ItemHeads();
  const scanner = new JsonScanner(heads);
  try {
    scanner.feed(list);
    scanner.finish();
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
  return heads.isList ? heads.found : undefined;
}

/** Notes the kinds of the items of a list, without their content. */
export class ItemHeads implements JsonObserver {
  readonly found: Head[] = [];
  isList = false;
  #item: Head = {};
  #action: Head | undefined;
  #isAction = false;
  #name: string | undefined;

  open(depth: number, isObject: boolean): void {
    if (depth === 1) this.isList = !isObject;
    else if (depth === ITEM) {
      this.#item = {};
      this.found.push(this.#item);
    } else if (depth === INNER && this.#isAction && isObject) {
      this.#action = {};
      this.#item['action'] = this.#action;
    }
  }

  close(depth: number): void {
    if (depth === INNER) this.#action = undefined;
  }

  key(depth: number, token: JsonToken): void {
    if (depth === ITEM) this.#isAction = token.is(ACTION);
    this.#name = KEPT.find((word) => token.is(word))?.toString();
  }

  scalar(depth: number, _firstByte: number, token: JsonToken): void {
    if (this.#name === undefined) return;
    if (depth === ITEM) this.#item[this.#name] = token.text();
    else if (depth === INNER && this.#action !== undefined) this.#action[this.#name] = token.text();
  }
}
