import { asObject, type JsonObject } from '../json-values';
import { parseJson } from '../parse-json';

/** Counts the UTF-8 bytes of a value: of a string itself, of other values as JSON; 0 for undefined and null. */
export function bytesOf(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value);
  return value === undefined || value === null ? 0 : Buffer.byteLength(JSON.stringify(value));
}

/** The largest event data that is parsed. Parsing more at once would delay every other call. */
const MAX_PARSED_CHARACTERS = 1_024 * 1_024;

/** Parses an event's data into an object. Returns `malformed` if it is none, `unread` if it is too large to parse. */
export function parseData(data: string): JsonObject | 'malformed' | 'unread' {
  if (data.length > MAX_PARSED_CHARACTERS) return 'unread';
  return asObject(parseJson(data)) ?? 'malformed';
}
