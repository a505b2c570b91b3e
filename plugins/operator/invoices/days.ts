import { fail } from '../../../core/errors';
import { reader } from '../../../core/http/query';

export const DAY_MS = 86_400_000;
/** Vendors answer so many days at once. */
export const MOST_DAYS = 31;

/** Whole days of UTC, both included, such as `2026-11-01`. */
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

/** The day of UTC of a moment. */
export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** The moments between which these days are: the first of the first day, and the first after the last. */
export function boundsOf({ from, to }: Days): { readonly start: Date; readonly end: Date } {
  return { start: new Date(from), end: new Date(Date.parse(to) + DAY_MS) };
}

/** Days as they were asked for; yesterday where none was. @throws INVALID_FIELD */
export function daysOf({ from, to }: { from?: string | undefined; to?: string | undefined }, nowMs = Date.now()): Days {
  const last = to ?? from ?? dayOf(nowMs - DAY_MS);
  const first = from ?? last;
  const days = (Date.parse(last) - Date.parse(first)) / DAY_MS + 1;
  if (days < 1 || days > MOST_DAYS)
    throw fail('INVALID_FIELD', {
      param: 'to',
      message: `to: expected at most ${MOST_DAYS} days, beginning with from`,
    });
  return { from: first, to: last };
}
