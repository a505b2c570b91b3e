import { mapValues } from '../../core/map-values';
import type { Schema } from '../../core/settings';

type JsonSchema = Readonly<Record<string, unknown>>;

/** JSON Schema (draft 7) as OpenAPI 3.0 writes it, which knows no list of types, no `const` and no `propertyNames`. */
export function toOpenApi(schema: Schema): JsonSchema {
  const { type, const: only, exclusiveMinimum, propertyNames: _, ...rest } = schema as JsonSchema;
  const inner = Object.fromEntries(Object.entries(rest).map(([word, value]) => [word, convertWithin(word, value)]));
  const bounded = typeof exclusiveMinimum === 'number' ? { minimum: exclusiveMinimum, exclusiveMinimum: true } : {};
  const fixed = only === undefined ? {} : { enum: [only] };
  return { ...typeWords(type), ...inner, ...bounded, ...fixed };
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
  if (word === 'properties') return mapValues(value as JsonSchema, (each) => toOpenApi(each as Schema));
  if (word === 'items') return toOpenApi(value as Schema);
  if (word === 'additionalProperties' && typeof value === 'object') return toOpenApi(value as Schema);
  if (word === 'anyOf' || word === 'oneOf' || word === 'allOf') return (value as Schema[]).map(toOpenApi);
  return value;
}
