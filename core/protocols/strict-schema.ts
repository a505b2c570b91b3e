import { asArray, asObject } from '../base/json-values';

/** JSON Schema keywords that no vendor of Chat or Responses enforces (platform.openai.com, Structured outputs, 2026-11). */
const UNHELD =
  /^(?:allOf|oneOf|not|if|then|else|dependent(?:Required|Schemas)|patternProperties|unevaluatedProperties|propertyNames)$/;

/** The maximum nesting depth of a schema that vendors enforce. */
const MAX_LEVELS = 10;

/**
 * Returns whether vendors of Chat and Responses accept a schema with `strict`. Its top must be an object, and every object must require all
 * its members and allow no others. The vendors reject a call with any other schema.
 */
export function isHeldStrictly(schema: unknown): boolean {
  return asObject(schema)?.['type'] === 'object' && isHeld(schema, MAX_LEVELS);
}

function isHeld(given: unknown, levels: number): boolean {
  const schema = asObject(given);
  if (schema === undefined || levels < 0 || Object.keys(schema).some((word) => UNHELD.test(word))) return false;
  const names = Object.keys(asObject(schema['properties']) ?? {});
  const isObject = [schema['type']].flat().includes('object') || 'properties' in schema;
  if (isObject && !isClosed(schema, names)) return false;
  const named = ['properties', '$defs', 'definitions'].flatMap((word) => Object.values(asObject(schema[word]) ?? {}));
  const listed = [...('items' in schema ? [schema['items']] : []), ...asArray(schema['anyOf'])];
  return [...named, ...listed].every((each) => isHeld(each, levels - 1));
}

function isClosed(schema: Readonly<Record<string, unknown>>, names: readonly string[]): boolean {
  const required = new Set(asArray(schema['required']));
  return schema['additionalProperties'] === false && names.every((name) => required.has(name));
}
