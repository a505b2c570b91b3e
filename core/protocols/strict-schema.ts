import { asArray, asObject } from '../base/json-values';

/** Words by which no vendor that speaks Chat or Responses holds an answer (platform.openai.com, Structured outputs, 2026-11). */
const UNHELD =
  /^(?:allOf|oneOf|not|if|then|else|dependent(?:Required|Schemas)|patternProperties|unevaluatedProperties|propertyNames)$/;

/** The most levels of a schema that is held. */
const MAX_LEVELS = 10;

/**
 * Returns whether vendors that speak Chat or Responses accept a schema with `strict`: an object at its top, all members of an
 * object required and no others allowed. They refuse the call with any other.
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
