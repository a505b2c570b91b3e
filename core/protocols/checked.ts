import { asObject, type JsonObject } from '../base/json-values';
import {
  NotTranslatable,
  type OutputFormat,
  type Part,
  type Source,
  type TextPart,
  type ToolResultPart,
} from '../catalog/conversation';
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

const FORMATS = ['text', 'json_object', 'json_schema'] as const;

/** Returns the output format of Chat and Responses. `described` returns the object at `inner`, which has the schema. @throws NotTranslatable */
export function outputFormatOf(
  format: JsonObject,
  path: string,
  inner = path,
  described = () => format,
): OutputFormat | undefined {
  const type = optionalWord(format, 'type', FORMATS, path) ?? 'text';
  if (type === 'text') return undefined;
  if (type === 'json_object') return { kind: 'json' };
  const object = described();
  if (object['schema'] === undefined) throw new NotTranslatable(`${inner}.schema`, 'is missing');
  return {
    kind: 'schema',
    name: textAt(object, 'name', inner),
    description: optionalText(object, 'description', inner),
    schema: schemaAt(object, 'schema', inner),
    strict: booleanAt(object, 'strict', inner),
  };
}

/** Returns a part of a message at `path` whose content must be text. @throws NotTranslatable */
export function onlyText(part: Part, path: string): TextPart {
  if (part.kind === 'text') return part;
  throw new NotTranslatable(`${path}.content`, 'must be text');
}

/** Returns the parts of a tool's result. @throws NotTranslatable for kinds of parts that a result cannot have */
export function resultParts(parts: readonly Part[], path: string): ToolResultPart['parts'] {
  return parts.map((part) => {
    if (part.kind === 'text' || part.kind === 'image' || part.kind === 'document') return part;
    throw new NotTranslatable(path, 'must be text, images and documents');
  });
}

/** Returns the source of a file from its URL. @throws NotTranslatable for a data URL without media type or base64 */
export function sourceOf(url: string, path: string): Source {
  if (!/^data:/i.test(url)) return { url };
  const comma = url.indexOf(',');
  const [mediaType, ...rest] = url.slice('data:'.length, Math.max(comma, 0)).toLowerCase().split(';');
  if (mediaType && rest.at(-1) === 'base64') return { base64: url.slice(comma + 1), mediaType };
  throw new NotTranslatable(path, 'must have its media type and base64 where it is a data URL');
}

/** Returns an object without its undefined members. */
export function present(members: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

function mustBe(kind: string, name: string, path: string): never {
  throw new NotTranslatable(memberPath(path, name), `must be ${kind}`);
}
