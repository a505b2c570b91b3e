import { invalidParam } from '../../core/base/errors';
import { E14_PER_E8 } from '../../core/base/money';
import type { Meter } from '../../core/catalog/usage';
import { reader } from '../../core/http/query';

export const DAY_MS = 86_400_000;
/** The most days that a vendor reports in one answer. */
export const MAX_REPORT_DAYS = 31;

/** A range of whole UTC days, first and last included, such as `2026-11-01`. */
export interface Days {
  readonly from: string;
  readonly to: string;
}

const DAY = /^\d{4}-\d\d-\d\d$/;

export const readDay = reader({ type: 'string', format: 'date', example: '2026-11-01' }, (text) => {
  if (!DAY.test(text) || Number.isNaN(Date.parse(text)) || utcDayOf(Date.parse(text)) !== text)
    throw new RangeError('expected a date in UTC such as 2026-11-01');
  return text;
});

/** Returns the UTC day of a moment. */
export function utcDayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** Returns the bounds of these days: the start of the first day, and the start of the day after the last. */
export function boundsOf({ from, to }: Days): { readonly start: Date; readonly end: Date } {
  return { start: new Date(from), end: new Date(Date.parse(to) + DAY_MS) };
}

/** Reads the requested days; the default is yesterday. @throws INVALID_FIELD */
export function daysOf({ from, to }: { from?: string | undefined; to?: string | undefined }, nowMs = Date.now()): Days {
  const last = to ?? from ?? utcDayOf(nowMs - DAY_MS);
  const first = from ?? last;
  const days = (Date.parse(last) - Date.parse(first)) / DAY_MS + 1;
  if (days < 1 || days > MAX_REPORT_DAYS)
    throw invalidParam('to', `expected \`from\` or a later day, at most ${MAX_REPORT_DAYS - 1} days later`);
  return { from: first, to: last };
}

/** The decimals of exact sums: 1e-14 USD is the price of one token where prices per million tokens are in 1e-8 USD. */
const DECIMALS = 14;

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,3}))?$/;

/**
 * Reads a decimal number in JSON notation into 1e-14 USD, rounded to the nearest. `unitDecimals` is 0 for dollars and 2 for cents.
 * @throws {RangeError} if the text is not a decimal number
 */
export function parseE14(text: string, unitDecimals: 0 | 2): bigint {
  const match = NUMBER.exec(text);
  if (match === null) throw new RangeError(`expected a decimal number, not ${JSON.stringify(text.slice(0, 40))}`);
  const [, sign, whole = '', fraction = '', exponent = '0'] = match;
  const shift = DECIMALS - unitDecimals - fraction.length + Number(exponent);
  const digits = BigInt(whole + fraction);
  const amount = shift >= 0 ? digits * 10n ** BigInt(shift) : divideToNearest(digits, 10n ** BigInt(-shift));
  return sign === '-' ? -amount : amount;
}

/** Converts 1e-14 USD to 1e-8 USD, rounded to the nearest; halves round away from zero. */
export function toE8(amountE14: bigint): bigint {
  return amountE14 < 0n ? -divideToNearest(-amountE14, E14_PER_E8) : divideToNearest(amountE14, E14_PER_E8);
}

function divideToNearest(numerator: bigint, denominator: bigint): bigint {
  return (numerator + denominator / 2n) / denominator;
}

/** The usage that a vendor reports for one day, one of its API keys, one model and one tier. */
export interface ReportedUsage {
  /** The UTC day. */
  readonly day: string;
  /** The vendor's id of the API key; null where the vendor names none. */
  readonly apiKeyId: string | null;
  readonly workspaceId: string | null;
  /** The vendor's name of the model. */
  readonly model: string;
  readonly tier: string | null;
  /** The count of each meter that the report has. Meters that it lacks are not compared. */
  readonly counts: ReadonlyMap<Meter, bigint>;
}

/** One charge of a vendor for one day. */
export interface ReportedCost {
  readonly day: string;
  /** The workspace or project; null is the default one, or none. */
  readonly workspaceId: string | null;
  /** The charged item, in the vendor's words. */
  readonly item: string | null;
  /** The amount in 1e-14 USD. */
  readonly amountE14: bigint;
}

export interface Report {
  readonly usage: readonly ReportedUsage[];
  readonly costs: readonly ReportedCost[];
}

/** A report could not be read; the message says why. */
export class ReportFailure extends Error {
  override readonly name = 'ReportFailure';
}
