import { QUOTE } from '../../core/http/json-bytes';
import { type JsonToken, scanWhole } from '../../core/http/json-scanner';
import { isForeign } from './address-gate';

/** Matches member names as vendors write them. All JSON parsers read such names alike, even if they ignore case or normalize Unicode. */
const PLAIN_KEY = /^[a-z][a-z0-9_]*$/;

/**
 * Returns whether JSON parsers could read the objects of a text differently, because a key is repeated or is not in plain lower case.
 * `except`: a top-level member whose value may have any keys, because this value does not affect the decision.
 */
export function hasDoubtfulKeys(text: string, except?: string): boolean {
  let isDoubtful = false;
  let isExcepted = false;
  const known: Set<string>[] = [];
  scanWhole([Buffer.from(text)], {
    open: () => void known.push(new Set()),
    close: () => void known.pop(),
    key: (depth: number, token: JsonToken) => {
      if (depth > 1 && isExcepted) return;
      const key = token.text() ?? '';
      if (depth === 1) isExcepted = key === except;
      isDoubtful ||= known.at(-1)?.has(key) === true || !PLAIN_KEY.test(key);
      known.at(-1)?.add(key);
    },
    scalar: () => undefined,
  });
  return isDoubtful;
}

/** Matches keys whose text values name an object at the vendor. In the schema of a client's tool, the values of such keys are JSON objects and not text. */
const NAMING = /(^|[_-])ids?$|^(container|file|skill|thread|vector_store)s?$/i;
const CAMEL_ID = /[a-z0-9]Ids?$/;

/** Returns whether a tool names something by id, or by an address without http or https. The object at the vendor may belong to another account. */
export function namesKept(text: string): boolean {
  let hasSome = false;
  const keys: string[] = [];
  scanWhole([Buffer.from(text)], {
    open: (depth, isObject) => {
      keys[depth] = isObject ? '' : (keys[depth - 1] ?? '');
    },
    close: () => undefined,
    key: (depth, token) => {
      keys[depth] = token.text() ?? '';
    },
    scalar: (depth, firstByte, token) => {
      const key = keys[depth] ?? '';
      hasSome ||= firstByte === QUOTE && (NAMING.test(key) || CAMEL_ID.test(key) || isForeign(token));
    },
  });
  return hasSome;
}
