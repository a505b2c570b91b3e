import { getOrInsert } from './collections';

const known = new Map<string, string>();

/** Returns a word of the configuration as JSON. There are few such words, so each is encoded once. */
export function quoted(word: string): string {
  return getOrInsert(known, word, JSON.stringify);
}
