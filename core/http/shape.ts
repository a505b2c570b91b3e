import type { Schema } from '../base/settings';

/** Short functions that make the schemas of answers of the gateway's own API for the OpenAPI document. */

const TEXT = { type: 'string' } as const;

/** The schemas of single values (such as texts, times and amounts) in answers of the gateway's own API. */
export const shape = {
  text: TEXT,
  uuid: { type: 'string', format: 'uuid', example: '019a9d5e-3c5c-7a52-8f7e-0d4f6a1b2c3d' },
  time: { type: 'string', format: 'date-time', example: '2026-11-01T09:30:00.000Z' },
  /** USD as a decimal number with 8 decimals. */
  usd: { type: 'string', pattern: '^-?\\d+\\.\\d{8}$', description: 'Decimal USD, 8 decimals.', example: '0.01050000' },
  integer: { type: 'integer' },
  number: { type: 'number' },
  yes: { type: 'boolean' },
  texts: { type: 'array', items: TEXT },
  any: {},
} as const satisfies Record<string, Schema>;

/** Returns the schema of a text that is one of several words. */
export function oneOf<const W extends readonly string[]>(...words: W): Schema & { readonly enum: W } {
  return { type: 'string', enum: words } as Schema & { enum: W };
}

/** Returns a schema that also accepts null. */
export function orNull(schema: Schema): Schema {
  const { enum: words } = schema as { readonly enum?: readonly unknown[] };
  return { ...schema, ...(words !== undefined && { enum: [...words, null] }), nullable: true };
}

/** Returns the schema of an array. */
export function listOf(items: Schema): Schema {
  return { type: 'array', items };
}

/** Returns the schema of an object that has all of these members. */
export function object(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: 'object', required: Object.keys(properties), properties };
}

/** Returns the schema of an object with these members, some of which may be absent. */
export function objectWith(
  properties: Readonly<Record<string, Schema>>,
  optional: Readonly<Record<string, Schema>>,
): Schema {
  return { ...object(properties), properties: { ...properties, ...optional } };
}

/** Returns the schema of an object that serves as a map: its member names are not fixed, and all values have one schema. */
export function mapOf(values: Schema): Schema {
  return { type: 'object', additionalProperties: values };
}

/** Returns the schema of a list's answer: `items` and `nextCursor`. */
export function pageShape(items: Schema): Schema {
  return object({ items: listOf(items), nextCursor: orNull(TEXT) });
}
