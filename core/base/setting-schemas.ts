import { DURATION } from './settings';

/**
 * Short functions that build the JSON Schema of settings. Each takes the description for the documents, then what its type needs, then
 * further keywords such as `minimum` and `default`.
 */

export function text<const M extends object = object>(description: string, more?: M) {
  return { description, type: 'string', ...more } as { readonly description: string; readonly type: 'string' } & M;
}

export function number<const M extends object = object>(description: string, more?: M) {
  return { description, type: 'number', ...more } as { readonly description: string; readonly type: 'number' } & M;
}

export function integer<const M extends object = object>(description: string, more?: M) {
  return { description, type: 'integer', ...more } as { readonly description: string; readonly type: 'integer' } & M;
}

export function flag<const M extends object = object>(description: string, more?: M) {
  return { description, type: 'boolean', ...more } as { readonly description: string; readonly type: 'boolean' } & M;
}

export function duration<const M extends object = object>(description: string, more?: M) {
  return { ...DURATION, description, ...more } as { readonly description: string } & typeof DURATION & M;
}

export function word<const W extends readonly unknown[], const M extends object = object>(
  description: string,
  words: W,
  more?: M,
) {
  return { description, enum: words, ...more } as { readonly description: string; readonly enum: W } & M;
}

export function list<const I extends object, const M extends object = object>(description: string, items: I, more?: M) {
  return { description, type: 'array', items, ...more } as {
    readonly description: string;
    readonly type: 'array';
    readonly items: I;
  } & M;
}

/** Returns the schema of an object with exactly these members. */
export function group<const P extends object, const M extends object = object>(
  description: string,
  properties: P,
  more?: M,
) {
  return { description, type: 'object', additionalProperties: false, ...more, properties } as {
    readonly description: string;
    readonly type: 'object';
    readonly additionalProperties: false;
    readonly properties: P;
  } & M;
}

/** Returns the schema of an object whose names the operator chooses and whose values all have one schema. */
export function map<const V extends object, const M extends object = object>(description: string, values: V, more?: M) {
  return { description, type: 'object', ...more, additionalProperties: values } as {
    readonly description: string;
    readonly type: 'object';
    readonly additionalProperties: V;
  } & M;
}
