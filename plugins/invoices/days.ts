import { fail } from '../../core/errors';
import { reader } from '../../core/http/query';

export const DAY_MS = 86_400_000;
/** The most days that a vendor reports in one answer. */
export const MOST_DAYS = 31;

/** A range of whole UTC days, first and last included, such as `2026-11-01`. */
export interface Days {
  readonly from: string;
  readonly to: string;
}

const DAY = /^\d{4}-\d\d-\d\d$/;

export const readDay = reader({ type: 'string', format: 'date', example: '2026-11-01' }, (text) => {
  if (!DAY.test(text) || Number.isNaN(Date.parse(text)) || dayOf(Date.parse(text)) !== text)
    throw new RangeError('expected a day of UTC such as 2026-11-01');
  return text;
});

/** Returns the UTC day of a moment. */
export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** Returns the bounds of these days: the start of the first day, and the start of the day after the last. */
export function boundsOf({ from, to }: Days): { readonly start: Date; readonly end: Date } {
  return { start: new Date(from), end: new Date(Date.parse(to) + DAY_MS) };
}

/** Reads the requested days; the default is yesterday. @throws INVALID_FIELD */
export function daysOf({ from, to }: { from?: string | undefined; to?: string | undefined }, nowMs = Date.now()): Days {
  const last = to ?? from ?? dayOf(nowMs - DAY_MS);
  const first = from ?? last;
  const days = (Date.parse(last) - Date.parse(first)) / DAY_MS + 1;
  if (days < 1 || days > MOST_DAYS)
    throw fail('INVALID_FIELD', {
      param: 'to',
      message: `to: expected \`from\` or a later day, at most ${MOST_DAYS - 1} days later`,
    });
  return { from: first, to: last };
}
