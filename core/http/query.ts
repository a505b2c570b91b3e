import { type ErrorCode, fail } from '../base/errors';
import type { Schema } from '../base/settings';
import type { PageRequest } from '../storage/page';

/**
 * A function that parses the text of one query parameter.
 * @throws RangeError whose message says what was expected
 */
export type Reader<T> = ((text: string) => T) & {
  /** The JSON Schema of the text for the OpenAPI document; absent if any text is valid. */
  readonly schema?: Schema;
  /** The error of a request without the parameter; absent if the parameter is optional. */
  readonly whenMissing?: ErrorCode;
};

/** Makes a reader from a parsing function and the JSON Schema for the OpenAPI documents. */
export function reader<T>(schema: Schema, read: (text: string) => T): Reader<T> {
  return Object.assign((text: string) => read(text), { schema });
}

/** Makes a parameter required. */
export function required<T>(read: Reader<T>, whenMissing: ErrorCode = 'INVALID_FIELD') {
  return Object.assign((text: string) => read(text), read, { whenMissing });
}

/** Returns a reader that accepts one of these words. */
export function wordReader<W extends string>(words: readonly W[], more: Schema = {}): Reader<W> {
  return reader({ type: 'string', enum: words, ...more }, (text) => readWord(text, words));
}

/** Returns a reader that accepts several of these words, separated by commas. */
export function wordsReader<W extends string>(words: readonly W[]): Reader<readonly W[]> {
  const description = `A comma-separated list of ${words.join(', ')}.`;
  return reader({ type: 'string', description }, (text) => text.split(',').map((each) => readWord(each.trim(), words)));
}

function readWord<W extends string>(text: string, words: readonly W[]): W {
  const word = words.find((each) => each === text);
  if (word === undefined) throw new RangeError(`expected one of ${words.join(', ')}`);
  return word;
}

/** Returns a reader that accepts `true` or `false`; the default is `standard`. */
export function flagReader(standard: boolean): Reader<boolean> {
  return reader(
    { type: 'boolean', default: standard },
    (text) => readWord(text, ['true', 'false'] as const) === 'true',
  );
}

/** The values that `readQuery` returns, by parameter name: each has the type of its reader's result, or is undefined. */
export type Filters<R extends Record<string, Reader<unknown>>> = {
  readonly [Name in keyof R]:
    | ReturnType<R[Name]>
    | (R[Name] extends { readonly whenMissing: ErrorCode } ? never : undefined);
};

/**
 * Parses a query string. Every name must be known and occur once.
 * @throws GatewayError INVALID_FIELD that names the parameter
 */
export function readQuery<R extends Record<string, Reader<unknown>>>(query: URLSearchParams, readers: R): Filters<R> {
  const filters: Record<string, unknown> = {};
  for (const [name, text] of query) {
    const reader = Object.hasOwn(readers, name) ? readers[name] : undefined;
    if (reader === undefined)
      throw wrong(name, `unknown parameter; expected one of ${Object.keys(readers).join(', ')}`);
    if (name in filters) throw wrong(name, 'is given twice');
    filters[name] = readFilter(name, text, reader);
  }
  for (const [name, { whenMissing }] of Object.entries(readers))
    if (whenMissing !== undefined && !(name in filters)) throw wrong(name, 'is missing', whenMissing);
  return filters as Filters<R>;
}

/**
 * Parses one parameter.
 * @throws GatewayError INVALID_FIELD that names the parameter
 */
export function readFilter<T>(name: string, text: string, reader: Reader<T>): T {
  try {
    return reader(text);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw wrong(name, error.message);
  }
}

function wrong(name: string, message: string, code: ErrorCode = 'INVALID_FIELD') {
  return fail(code, { param: name, message: `${name}: ${message}` });
}

const MAX_LIMIT = 1_000;
const DEFAULT_LIMIT = 100;

/** The readers for the parameters `limit` and `cursor` of every list. */
export const PAGE_READERS = {
  limit: integerReader(1, MAX_LIMIT, { default: DEFAULT_LIMIT }),
  cursor: reader({ type: 'string', description: '`nextCursor` of the previous page.' }, (text) => text),
};

/** Returns the page of a list that the parameters request. */
export function pageOf(filters: Filters<typeof PAGE_READERS>): PageRequest {
  return { limit: filters.limit ?? DEFAULT_LIMIT, cursor: filters.cursor };
}

/** Returns a reader that accepts a whole number from `minimum` to `maximum`. */
export function integerReader(minimum: number, maximum: number, more: Schema = {}): Reader<number> {
  return reader({ type: 'integer', minimum, maximum, ...more }, (text) => readInteger(text, minimum, maximum));
}

function readInteger(text: string, least: number, most: number): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most)) throw new RangeError(`expected an integer from ${least} to ${most}`);
  return value;
}

/** Accepts text for which the database can search. It excludes NUL, because Postgres does not accept NUL in text. */
export const readText = reader({ type: 'string', minLength: 1, maxLength: 500 }, (text) => {
  if (text === '' || text.length > 500 || text.includes('\0')) throw new RangeError('expected 1 to 500 characters');
  return text;
});

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Accepts a UUID. */
export const readUuid = reader({ type: 'string', format: 'uuid' }, (text) => {
  if (!UUID.test(text)) throw new RangeError('expected an id such as 019a9d5e-3c5c-7a52-8f7e-0d4f6a1b2c3d');
  return text.toLowerCase();
});

const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

/** Accepts a time in RFC 3339 format. It must have a UTC offset, which decides the moment. In a query string, a raw `+` arrives as a space. */
export const readTime = reader({ type: 'string', format: 'date-time' }, (text) => {
  const match = RFC_3339.exec(text.replace(' ', '+'));
  const time = new Date(match?.[0] ?? '');
  if (match === null || !isStorable(time) || !isDay(match)) {
    throw new RangeError('expected a time with its offset, such as 2026-11-20T08:30:00Z or 2026-11-20T09:30:00+01:00');
  }
  return time;
});

/** Returns whether the year in UTC is from 1 to 9999, because JavaScript and the database format only these years alike. */
export function isStorable(time: Date): boolean {
  const year = time.getUTCFullYear();
  return year >= 1 && year <= 9999;
}

/** Returns whether the month has this day, because JavaScript would read February 30 as March 2. */
function isDay([, year, month, day]: RegExpExecArray): boolean {
  return new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDate() === Number(day);
}
