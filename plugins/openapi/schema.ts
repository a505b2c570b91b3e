import { mapValues } from '../../core/base/collections';
import type { Schema } from '../../core/base/settings';

type JsonSchema = Readonly<Record<string, unknown>>;

/** Converts JSON Schema (draft 7) to OpenAPI 3.0, which has no lists of types, no `const` and no `propertyNames`. */
export function toOpenApi(schema: Schema): JsonSchema {
  const { type, const: only, exclusiveMinimum, pattern, propertyNames: _, ...rest } = schema as JsonSchema;
  const inner = Object.fromEntries(Object.entries(rest).map(([word, value]) => [word, convertWithin(word, value)]));
  const bounded = typeof exclusiveMinimum === 'number' ? { minimum: exclusiveMinimum, exclusiveMinimum: true } : {};
  const fixed = only === undefined ? {} : { enum: [only] };
  const matched = typeof pattern === 'string' ? { pattern: portablePattern(pattern) } : {};
  return { ...typeWords(type), ...openness(schema as JsonSchema), ...inner, ...bounded, ...fixed, ...matched };
}

/** Marks an object without named properties as open, because otherwise openapi-typescript makes a type that accepts no property. */
function openness({ type, properties, additionalProperties }: JsonSchema): JsonSchema {
  return type === 'object' && properties === undefined && additionalProperties === undefined
    ? { additionalProperties: true }
    : {};
}

/**
 * Escapes control characters and drops lone surrogates in a pattern, because many programs read patterns without the flag `u`. The handlers
 * check with the original pattern, which still rejects lone surrogates.
 */
function portablePattern(pattern: string): string {
  return pattern.replaceAll('\\p{Cc}', '\\u0000-\\u001f\\u007f-\\u009f').replaceAll('\\p{Cs}', '');
}

/** Converts a property. Its default moves into the description, because openapi-typescript makes properties with a default required. */
function property(schema: Schema): JsonSchema {
  const { default: usual, description, ...rest } = toOpenApi(schema);
  if (usual === undefined) return { ...(description !== undefined && { description }), ...rest };
  return { description: [description, `Default: \`${JSON.stringify(usual)}\`.`].filter(Boolean).join(' '), ...rest };
}

function typeWords(type: unknown): JsonSchema {
  if (type === undefined) return {};
  const types = [type].flat().filter((each) => each !== 'null');
  const nullable = [type].flat().includes('null') ? { nullable: true } : {};
  const [only, ...others] = types;
  return others.length === 0
    ? { type: only, ...nullable }
    : { anyOf: types.map((each) => ({ type: each })), ...nullable };
}

function convertWithin(word: string, value: unknown): unknown {
  if (word === 'properties') return mapValues(value as JsonSchema, (each) => property(each as Schema));
  if (word === 'items') return toOpenApi(value as Schema);
  if (word === 'additionalProperties' && typeof value === 'object') return toOpenApi(value as Schema);
  if (word === 'anyOf' || word === 'oneOf' || word === 'allOf') return (value as Schema[]).map(toOpenApi);
  return value;
}
