import { NotTranslatable } from '../../catalog/conversation';
import { asObject, type JsonObject } from '../../json-values';

/** Reading values of one kind. A value of another kind is refused, because it would be lost silently. */

export function objectAt(value: unknown, place: string): JsonObject {
  return asObject(value) ?? not('an object', place);
}

export function textAt(value: unknown, place: string): string {
  return typeof value === 'string' ? value : not('a text', place);
}

export function flagAt(value: unknown, place: string): boolean | undefined {
  if (value === undefined || typeof value === 'boolean') return value;
  return not('true or false', place);
}

export function numberAt(value: unknown, place: string): number | undefined {
  if (value === undefined || (typeof value === 'number' && Number.isFinite(value))) return value;
  return not('a number', place);
}

export function optionalTextAt(value: unknown, place: string): string | undefined {
  return value === undefined ? undefined : textAt(value, place);
}

/** Returns each item of a list with its place; an absent list is empty. */
export function itemsAt(value: unknown, place: string): readonly { readonly item: unknown; readonly place: string }[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) return not('a list', place);
  return value.map((item: unknown, at) => ({ item, place: `${place}[${at}]` }));
}

export function oneOf<Word extends string>(value: unknown, words: readonly Word[], place: string): Word {
  return words.find((word) => word === value) ?? not(`one of ${words.join(', ')}`, place);
}

function not(kind: string, place: string): never {
  throw new NotTranslatable(place, `is not ${kind}`);
}
