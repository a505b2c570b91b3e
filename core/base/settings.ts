import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import type { FromSchema, JSONSchema } from 'json-schema-to-ts';

/** The TypeScript type of the values that a JSON Schema accepts. Properties with a default are always present. */
export type Settings<S extends object> = S extends { readonly type: 'object' } & JSONSchema
  ? FromSchema<S, { keepDefaultedPropertiesOptional: false }>
  : unknown;

/** A JSON Schema (draft 7) of an object. Code writes it as a literal, so that TypeScript can derive the type of the values. */
export type Schema = object;

/** One problem of a value: the path of the invalid part, such as `timeouts.connect`, and what was expected there. */
export interface Problem {
  readonly path: readonly (string | number)[];
  readonly message: string;
  readonly missing?: string;
  readonly unknown?: string;
  readonly known?: readonly string[];
}

/** The kinds of names that a string setting can contain if its schema has `'x-names'`. */
export type NamedKind = 'upstream' | 'model';

/** One use of an upstream's or model's name inside a value. Code that knows all names looks it up. */
export interface NameUse {
  readonly kind: NamedKind;
  readonly name: string;
  readonly path: readonly (string | number)[];
}

/** Checks a value against a schema. @param names the list to which the check adds each upstream or model name that it finds in the value */
export type Check<T> = (
  value: unknown,
  names?: NameUse[],
) => { readonly value: T } | { readonly problems: readonly Problem[] };

const ajv = new Ajv({
  allErrors: true,
  useDefaults: true,
  strict: true,
  allowUnionTypes: true,
  verbose: true,
  passContext: true,
  // A process compiles each schema once and uses it seldom. Optimized code would cost more time at every start than it saves.
  code: { optimize: false },
});
/** Keywords that check nothing. `x-expected` says in words what a pattern expects; `example` is for the OpenAPI documents. */
for (const word of ['example', 'x-expected', 'tsType']) ajv.addKeyword(word);
ajv.addKeyword({
  keyword: 'x-names',
  type: 'string',
  schemaType: 'string',
  errors: false,
  validate(this: NameUse[] | undefined, kind: NamedKind, name: string, _: unknown, at?: { instancePath: string }) {
    this?.push({ kind, name, path: readPointer(at?.instancePath ?? '') });
    return true;
  },
});

/** The schema of durations such as `250ms`, `10s`, `5m`, `1h`. */
export const DURATION = { type: 'string', pattern: '^[0-9]+(ms|s|m|h)$' } as const;

const MILLISECONDS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;

/** The longest delay of a Node timer in milliseconds. With a longer one, the timer would not wait at all. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Returns the milliseconds of a duration that matches `DURATION`. */
export function parseDuration(text: string): number {
  const unit = /(ms|s|m|h)$/.exec(text)?.[1] as keyof typeof MILLISECONDS | undefined;
  if (unit === undefined) throw new RangeError(`expected a duration such as 250ms, 10s, 5m or 1h, not "${text}"`);
  return Math.min(Number.parseInt(text, 10) * MILLISECONDS[unit], MAX_TIMER_MS);
}

/**
 * Returns a check that compiles its schema at its first value, because a process has many schemas and checks few values at the start. The
 * check copies the value, fills in defaults and never coerces types.
 * The caller states the type `T` of the checked values. It should be the `Settings` of the schema, which TypeScript cannot compute for a
 * generic schema.
 */
export function compileCheck<T>(schema: Schema): Check<T> {
  const check = compileCheckInPlace<T>(schema);
  return (value, names) => check(structuredClone(value), names);
}

/** Returns a check like that of `compileCheck`, but without the copy: it fills the defaults into the given value. It reports at most `maxProblems`. */
export function compileCheckInPlace<T>(schema: Schema, maxProblems = Number.POSITIVE_INFINITY): Check<T> {
  let validate: ValidateFunction | undefined;
  return (value, names = []) => {
    validate ??= ajv.compile(schema);
    if (validate.call(names, value)) return { value: value as T };
    // Drops the `propertyNames` errors, because other errors already say what is wrong with the name.
    const errors = (validate.errors ?? []).filter(({ keyword }) => keyword !== 'propertyNames');
    return { problems: errors.slice(0, maxProblems).map(toProblem) };
  };
}

/** Converts a JSON pointer to a path: `/messages/0/role` -> `['messages', 0, 'role']` */
function readPointer(pointer: string): (string | number)[] {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part));
}

function toProblem(error: ErrorObject): Problem {
  const path = readPointer(error.instancePath);
  if (error.propertyName !== undefined) path.push(error.propertyName);
  switch (error.keyword) {
    case 'additionalProperties': {
      const unknown = String(error.params['additionalProperty']);
      const known = Object.keys((error.parentSchema?.['properties'] as object | undefined) ?? {});
      return { path: [...path, unknown], message: `unknown setting "${unknown}"`, unknown, known };
    }
    case 'required': {
      const missing = String(error.params['missingProperty']);
      return { path, message: `"${missing}" is missing`, missing };
    }
    case 'enum': {
      const known = (error.params['allowedValues'] as unknown[]).map(String);
      return { path, message: `expected one of ${known.join(', ')}`, unknown: String(error.data), known };
    }
    case 'type':
      return { path, message: `expected ${[error.params['type']].flat().join(' or ')}, not ${describe(error.data)}` };
    case 'pattern':
      return { path, message: expectedByPattern(error) };
    case 'uniqueItems':
      return { path, message: 'expected no duplicate entries' };
    default:
      return { path, message: expectedByLimit(error) ?? error.message ?? 'is not valid' };
  }
}

const LIMITS: Readonly<Record<string, readonly [limit: string, one?: string, many?: string]>> = {
  minimum: ['at least'],
  exclusiveMinimum: ['more than'],
  maximum: ['at most'],
  minLength: ['at least', 'character', 'characters'],
  maxLength: ['at most', 'character', 'characters'],
  minItems: ['at least', 'entry', 'entries'],
  maxItems: ['at most', 'entry', 'entries'],
  minProperties: ['at least', 'field', 'fields'],
  maxProperties: ['at most', 'field', 'fields'],
};

function expectedByLimit({ keyword, params }: ErrorObject): string | undefined {
  const [limit, one, many] = LIMITS[keyword] ?? [];
  if (limit === undefined) return undefined;
  const count = Number(params['limit']);
  return ['expected', limit, count, count === 1 ? one : many].join(' ').trimEnd();
}

function expectedByPattern(error: ErrorObject): string {
  if (error.params['pattern'] === DURATION.pattern) return 'expected a duration such as 250ms, 10s, 5m or 1h';
  const words: unknown = error.parentSchema?.['x-expected'];
  return typeof words === 'string' ? `expected ${words}` : `must match ${error.params['pattern']}`;
}

/** Describes a value without its text, because an operator may have put a secret into the wrong setting. */
function describe(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return 'an object';
  return typeof value === 'string' ? 'a string' : `${typeof value} ${String(value)}`;
}
