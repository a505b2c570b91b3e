import { getOrInsert } from './collections';

const known = new Map<string, string>();

/** Returns a word of the configuration as JSON text, from a cache, because the configuration has few such words. */
export function quoted(word: string): string {
  return getOrInsert(known, word, JSON.stringify);
}
