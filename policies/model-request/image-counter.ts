import { type JsonToken, QUOTE } from '../../core/json-scanner';

/** What is known of one content part while it is read; its keys may come in any order. */
interface Part {
  type: string | undefined;
  /** Length of `source.data`, as it stands in the body. */
  dataBytes: number;
  dataIsBase64: boolean;
  /** Length of what follows the header of a data URL in `image_url.url`. */
  urlBytes: number;
}

/** `messages[].content[]` and, in the result of a tool, `messages[].content[].content[]`. */
const PART_DEPTHS: readonly number[] = [5, 7];

const DATA_URL = /^"data:[^,"\\]{0,200};base64,/i;
const MAX_DATA_URL_HEAD_BYTES = 256;

/**
 * Counts image parts and the base64 they carry. Only parts whose `type` says image count, and only where parts stand:
 * the arguments of a tool may look the same and are text.
 */
export class ImageCounter {
  images = 0;
  base64Bytes = 0;

  readonly #parts = new Map<number, Part>();
  /** The key under way in a part and in the object below it, by depth. */
  readonly #keys: (string | undefined)[] = [];

  open(depth: number, isObject: boolean): void {
    this.#keys[depth] = undefined;
    if (isObject && this.#isPartDepth(depth)) this.#parts.set(depth, newPart());
  }

  close(depth: number): void {
    const part = this.#parts.get(depth);
    if (part === undefined) return;
    this.#parts.delete(depth);
    if (part.type !== 'image' && part.type !== 'image_url') return;
    this.images += 1;
    if (part.type === 'image_url') this.base64Bytes += part.urlBytes;
    else if (part.dataIsBase64) this.base64Bytes += part.dataBytes;
  }

  key(depth: number, token: JsonToken): void {
    if (this.#parts.has(depth) || this.#parts.has(depth - 1)) this.#keys[depth] = token.text();
  }

  scalar(depth: number, firstByte: number, token: JsonToken): void {
    if (firstByte !== QUOTE) return;
    const part = this.#parts.get(depth);
    if (part !== undefined) {
      if (this.#keys[depth] === 'type') part.type = token.text();
      return;
    }
    const owner = this.#parts.get(depth - 1);
    if (owner !== undefined) this.#readBelow(owner, this.#keys[depth - 1], this.#keys[depth], token);
  }

  /** A member of `source` or `image_url`. */
  #readBelow(part: Part, parent: string | undefined, key: string | undefined, token: JsonToken): void {
    if (parent === 'source' && key === 'data') part.dataBytes = token.end - token.start - 2;
    else if (parent === 'source' && key === 'type') part.dataIsBase64 = token.text() === 'base64';
    else if (parent === 'image_url' && key === 'url') part.urlBytes = base64InUrl(token);
  }

  /** A list of parts stands under `content`; the one at depth 4 is known to, the inner one has to be asked. */
  #isPartDepth(depth: number): boolean {
    if (!PART_DEPTHS.includes(depth)) return false;
    return depth === 5 || (this.#parts.has(5) && this.#keys[5] === 'content');
  }
}

function newPart(): Part {
  return { type: undefined, dataBytes: 0, dataIsBase64: false, urlBytes: 0 };
}

function base64InUrl(token: JsonToken): number {
  const head = DATA_URL.exec(token.head(MAX_DATA_URL_HEAD_BYTES))?.[0];
  return head === undefined ? 0 : token.end - token.start - head.length - 1;
}
