import { asObject, type JsonObject } from '../base/json-values';
import { NotTranslatable } from '../catalog/conversation';
import { repeatsName } from '../http/raw-json';
import { memberPath } from './translation-rules';

/**
 * Functions that read members of one type from a JSON object. They refuse a value of another type, because translation would silently lose
 * it. `path` is the object's path in the request.
 */

/** Returns the text in a member. @throws NotTranslatable for anything but a text */
export function textAt(object: JsonObject, name: string, path = ''): string {
  const value = object[name];
  return typeof value === 'string' ? value : mustBe('text', name, path);
}

export function optionalText(object: JsonObject, name: string, path = ''): string | undefined {
  return object[name] === undefined ? undefined : textAt(object, name, path);
}

/** Returns the list of texts in a member; an absent list is empty. @throws NotTranslatable for anything else */
export function textsAt(object: JsonObject, name: string, path = ''): readonly string[] {
  return listAt(object, name, path).map((text, at) =>
    typeof text === 'string' ? text : mustBe('text', `${name}[${at}]`, path),
  );
}

/** Returns the number in a member. @throws NotTranslatable for anything but a number */
export function numberAt(object: JsonObject, name: string, path = ''): number | undefined {
  const value = object[name];
  return value === undefined || typeof value === 'number' ? value : mustBe('a number', name, path);
}

/** Returns the integer in a member. @throws NotTranslatable for anything but an integer of `least` or more */
export function integerAt(object: JsonObject, name: string, least: number, path = ''): number | undefined {
  const value = numberAt(object, name, path);
  if (value === undefined || (Number.isSafeInteger(value) && value >= least)) return value;
  return mustBe(`an integer of ${least} or more`, name, path);
}

/** Returns the boolean in a member. @throws NotTranslatable for anything but a boolean */
export function booleanAt(object: JsonObject, name: string, path = ''): boolean | undefined {
  const value = object[name];
  return value === undefined || typeof value === 'boolean' ? value : mustBe('true or false', name, path);
}

/** Returns the value of a member that must be one of `words`. @throws NotTranslatable for any other value */
export function wordAt<const W extends string>(object: JsonObject, name: string, words: readonly W[], path = ''): W {
  if (object[name] === undefined) throw new NotTranslatable(memberPath(path, name), 'is missing');
  return words.find((word) => word === object[name]) ?? mustBe(`one of ${words.join(', ')}`, name, path);
}

export function optionalWord<const W extends string>(
  object: JsonObject,
  name: string,
  words: readonly W[],
  path = '',
): W | undefined {
  return object[name] === undefined ? undefined : wordAt(object, name, words, path);
}

/** Returns the object in a member. @throws NotTranslatable for anything but an object */
export function objectAt(object: JsonObject, name: string, path = ''): JsonObject {
  return asObject(object[name]) ?? mustBe('an object', name, path);
}

export function optionalObject(object: JsonObject, name: string, path = ''): JsonObject | undefined {
  return object[name] === undefined ? undefined : objectAt(object, name, path);
}

/** Returns the JSON Schema in a member, whose text is kept unchanged. @throws NotTranslatable for anything but an object, and for a duplicate name */
export function schemaAt(object: JsonObject, name: string, path = ''): JsonObject {
  const schema = objectAt(object, name, path);
  if (repeatsName(schema)) throw new NotTranslatable(memberPath(path, name), 'has a name twice in one object');
  return schema;
}

export function optionalSchema(object: JsonObject, name: string, path = ''): JsonObject | undefined {
  return object[name] === undefined ? undefined : schemaAt(object, name, path);
}

/** Returns a list; an absent list is empty. @throws NotTranslatable for anything but a list */
export function listAt(object: JsonObject, name: string, path = ''): readonly unknown[] {
  const value = object[name] ?? [];
  return Array.isArray(value) ? value : mustBe('a list', name, path);
}

function mustBe(kind: string, name: string, path: string): never {
  throw new NotTranslatable(memberPath(path, name), `must be ${kind}`);
}
