import { asArray, asCount, asObject, asText, type JsonObject } from '../../core/json-values';
import { parseJson } from '../../core/parse-json';

export { asArray, asCount, asObject, asText, type JsonObject };

/** UTF-8 bytes of a value: of a string itself, of anything else as JSON, of nothing 0. */
export function bytesOf(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value);
  return value === undefined || value === null ? 0 : Buffer.byteLength(JSON.stringify(value));
}

/** Larger data is never parsed in one go: it would hold up every other call. */
const MAX_PARSED_CHARACTERS = 1_024 * 1_024;

/** An event's data as an object; `malformed` when it is not one, `unread` when it is too large to be parsed. */
export function parseData(data: string): JsonObject | 'malformed' | 'unread' {
  if (data.length > MAX_PARSED_CHARACTERS) return 'unread';
  return asObject(parseJson(data)) ?? 'malformed';
}
