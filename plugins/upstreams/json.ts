import { parseJson } from '../../core/wire/read-answer';

/** Reading values whose shape is somebody else's: what is not as expected is undefined, never an error. */

export type JsonObject = Readonly<Record<string, unknown>>;

export function asObject(value: unknown): JsonObject | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}

export function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function asText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** A token count; undefined when it is not an integer >= 0, for unknown is not zero. */
export function asCount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

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
