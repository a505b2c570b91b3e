import { isDeepStrictEqual } from 'node:util';
import { NotTranslatable } from '../../catalog/conversation';
import { asObject, type JsonObject } from '../../json-values';
import { ruleOf } from './rules';

/**
 * Returns the members of an object that are carried, as the rules say. `place` is the object's name in the rules, `path` the one that the
 * client is told. `isEcho`: the client repeats an earlier answer, whose unknown members are dropped.
 * @throws NotTranslatable for a member that is refused or unknown
 */
export function carriedMembers(given: unknown, place: string, path: string, isEcho = false): JsonObject {
  const object = asObject(given);
  if (object === undefined) throw new NotTranslatable(path, 'must be an object');
  const carried: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(object)) {
    if (value === null || value === undefined) continue;
    const rule = ruleOf(place === '' ? name : `${place}.${name}`);
    const told = path === '' ? name : `${path}.${name}`;
    if (rule === undefined && !isEcho)
      throw new NotTranslatable(told, 'is unknown, so it cannot be carried to another dialect');
    if (rule?.fate === 'carried') carried[name] = value;
    if (rule?.fate === 'refused' && !rule.unless?.some((free) => isDeepStrictEqual(free, value)))
      throw new NotTranslatable(told, rule.why);
  }
  return carried;
}

/** Returns the `type` of what stands in a place. @throws NotTranslatable for one that is refused or unknown */
export function carriedType(given: unknown, place: string, path: string, usual?: string): string {
  const type = asObject(given)?.['type'] ?? usual;
  const rule = typeof type === 'string' ? ruleOf(`${place}[${type}]`) : undefined;
  if (typeof type === 'string' && rule?.fate === 'carried') return type;
  const why = rule?.why ?? 'is unknown, so it cannot be carried to another dialect';
  throw new NotTranslatable(`${path}.type`, `is ${JSON.stringify(type)}, which ${why}`);
}

/** @throws NotTranslatable for anything but text */
export function textAt(object: JsonObject, name: string, path: string): string {
  const value = object[name];
  if (typeof value !== 'string') throw new NotTranslatable(path === '' ? name : `${path}.${name}`, 'must be text');
  return value;
}

export function optionalText(object: JsonObject, name: string, path: string): string | undefined {
  return object[name] === undefined ? undefined : textAt(object, name, path);
}

/** @throws NotTranslatable for anything but a number */
export function numberAt(object: JsonObject, name: string): number | undefined {
  const value = object[name];
  if (value === undefined || typeof value === 'number') return value;
  throw new NotTranslatable(name, 'must be a number');
}

/** @throws NotTranslatable for anything but an integer of `least` or more */
export function integerAt(object: JsonObject, name: string, least: number): number | undefined {
  const value = numberAt(object, name);
  if (value === undefined || (Number.isSafeInteger(value) && value >= least)) return value;
  throw new NotTranslatable(name, `must be an integer of ${least} or more`);
}

/** @throws NotTranslatable for anything but a boolean */
export function booleanAt(object: JsonObject, name: string, path = name): boolean | undefined {
  const value = object[name];
  if (value === undefined || typeof value === 'boolean') return value;
  throw new NotTranslatable(path, 'must be true or false');
}

/** @throws NotTranslatable for anything but one of the words */
export function wordAt<const W extends string>(
  object: JsonObject,
  name: string,
  words: readonly W[],
  path = name,
): W | undefined {
  const value = object[name];
  if (value === undefined) return undefined;
  const word = words.find((each) => each === value);
  if (word === undefined) throw new NotTranslatable(path, `must be one of ${words.join(', ')}`);
  return word;
}

/** @throws NotTranslatable for anything but a list */
export function listAt(object: JsonObject, name: string, path = name): readonly unknown[] {
  const value = object[name] ?? [];
  if (Array.isArray(value)) return value;
  throw new NotTranslatable(path, 'must be a list');
}
