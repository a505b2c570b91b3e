/** The functions in this file read values of unknown type. For a value of an unexpected type, they return undefined or an empty value and never throw. */

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

/** Returns a token count; undefined when it is not an integer >= 0, because unknown is not zero. */
export function asCount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** Returns the value at a path inside a value; undefined if the path does not exist. */
export function memberOf(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (within, part) =>
      within !== null && typeof within === 'object' ? (within as Record<string, unknown>)[String(part)] : undefined,
    value,
  );
}
