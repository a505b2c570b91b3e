import { fail } from '../base/errors';
import { formatUsd, parseUsd } from '../base/money';
import { readTime } from '../http/query';

/** Text that a person enters: no control characters, and nothing that the database cannot store. */
export const TEXT = {
  type: 'string',
  minLength: 1,
  maxLength: 200,
  pattern: '^[^\\p{Cc}\\p{Cs}]+$',
  'x-expected': 'text without control characters',
} as const;

/** The body of a request that needs none: it may have no fields. */
export const NOTHING = { type: 'object', additionalProperties: false, properties: {} } as const;

/** A decimal amount of USD. It is never a JSON number, because those are binary fractions. */
export const AMOUNT = { type: 'string', maxLength: 40 } as const;

/** A password. A minimum length is enough, because the person may choose the characters. */
export const PASSWORD = { ...TEXT, minLength: 12 } as const;

export const ALLOWED_MODELS = { type: 'array', minItems: 1, maxItems: 1_000, uniqueItems: true, items: TEXT } as const;

/** @throws GatewayError INVALID_FIELD that names the field */
export function readAmount(field: string, text: string): bigint {
  return asField(field, () => parseUsd(text));
}

function asField<T>(field: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw fail('INVALID_FIELD', { param: field, message: `${field}: ${error.message}` });
  }
}

/** Formats an amount in USD; null if it is unknown, never 0. */
export function showUsd(amountE8: bigint | undefined): string | null {
  return amountE8 === undefined ? null : formatUsd(amountE8);
}

/** A time with its offset, in the format of `readTime`. */
export const TIME = { type: 'string', maxLength: 40, 'x-expected': 'an RFC 3339 time with an offset' } as const;

/** @throws GatewayError INVALID_FIELD that names the field, also if the time has passed */
export function readComingTime(field: string, text: string): Date {
  const time = asField(field, () => readTime(text));
  if (time.getTime() <= Date.now())
    throw fail('INVALID_FIELD', { param: field, message: `${field}: expected a time in the future` });
  return time;
}
