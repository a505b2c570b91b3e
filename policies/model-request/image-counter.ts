import { type JsonToken, QUOTE } from '../../core/json-scanner';

/** What is known of one content part while it is read; its keys may come in any order. */
interface Part {
  isImage: boolean;
  isImageUrl: boolean;
  /** Length of `source.data`, as it stands in the body. */
  dataBytes: number;
  dataIsBase64: boolean;
  /** Length of what follows the header of a data URL in `image_url.url`. */
  urlBytes: number;
  /** The key under way in the part, and the one in the object below it; undefined when we do not look at it. */
  key: Buffer | undefined;
  keyBelow: Buffer | undefined;
}

/** Depth of the objects in `messages[].content[]`. */
const PART = 5;
/** In the result of a tool: of those in `messages[].content[].content[]`. */
const INNER_PART = 7;

const TYPE = Buffer.from('type');
const CONTENT = Buffer.from('content');
const SOURCE = Buffer.from('source');
const IMAGE_URL = Buffer.from('image_url');
const DATA = Buffer.from('data');
const URL_KEY = Buffer.from('url');
const IMAGE = Buffer.from('image');
const BASE64 = Buffer.from('base64');

const PART_KEYS: readonly Buffer[] = [TYPE, SOURCE, IMAGE_URL, CONTENT];
const KEYS_BELOW: readonly Buffer[] = [TYPE, DATA, URL_KEY];

const DATA_URL = /^"data:[^,"\\]{0,200};base64,/i;
const MAX_DATA_URL_HEAD_BYTES = 256;

/**
 * Counts image parts and the base64 they carry. Only parts whose `type` says image count, and only where parts stand:
 * the arguments of a tool may look the same and are text.
 */
export class ImageCounter {
  images = 0;
  base64Bytes = 0;

  #part: Part | undefined;
  #innerPart: Part | undefined;

  open(depth: number, isObject: boolean): void {
    if (!isObject) return;
    if (depth === PART) this.#part = newPart();
    else if (depth === INNER_PART && this.#part?.key === CONTENT) this.#innerPart = newPart();
  }

  close(depth: number): void {
    const part = this.#partAt(depth);
    if (part === undefined) return;
    if (depth === PART) this.#part = undefined;
    else this.#innerPart = undefined;
    if (!part.isImage && !part.isImageUrl) return;
    this.images += 1;
    if (part.isImageUrl) this.base64Bytes += part.urlBytes;
    else if (part.dataIsBase64) this.base64Bytes += part.dataBytes;
  }

  key(depth: number, token: JsonToken): void {
    const part = this.#partAt(depth);
    if (part !== undefined) {
      part.key = PART_KEYS.find((word) => token.is(word));
      return;
    }
    const owner = this.#partAt(depth - 1);
    if (owner?.key === SOURCE || owner?.key === IMAGE_URL) owner.keyBelow = KEYS_BELOW.find((word) => token.is(word));
  }

  scalar(depth: number, firstByte: number, token: JsonToken): void {
    if (firstByte !== QUOTE) return;
    const part = this.#partAt(depth);
    if (part === undefined) {
      const owner = this.#partAt(depth - 1);
      if (owner !== undefined) readBelow(owner, token);
    } else if (part.key === TYPE) {
      part.isImage = token.is(IMAGE);
      part.isImageUrl = token.is(IMAGE_URL);
    }
  }

  #partAt(depth: number): Part | undefined {
    if (depth === PART) return this.#part;
    return depth === INNER_PART ? this.#innerPart : undefined;
  }
}

/** A string in the object below a part: a member of `source` or `image_url`. */
function readBelow(part: Part, token: JsonToken): void {
  if (part.key === SOURCE) {
    if (part.keyBelow === DATA) part.dataBytes = token.end - token.start - 2;
    else if (part.keyBelow === TYPE) part.dataIsBase64 = token.is(BASE64);
  } else if (part.key === IMAGE_URL && part.keyBelow === URL_KEY) {
    part.urlBytes = base64InUrl(token);
  }
}

function newPart(): Part {
  return {
    isImage: false,
    isImageUrl: false,
    dataBytes: 0,
    dataIsBase64: false,
    urlBytes: 0,
    key: undefined,
    keyBelow: undefined,
  };
}

function base64InUrl(token: JsonToken): number {
  const head = DATA_URL.exec(token.head(MAX_DATA_URL_HEAD_BYTES))?.[0];
  return head === undefined ? 0 : token.end - token.start - head.length - 1;
}
