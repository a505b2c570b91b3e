import { DateTime, IANAZone } from 'luxon';
import { type Reader, reader } from '../http/query';

/** Minutes, hours, days and months as the clocks of a time zone show them. Times are milliseconds since 1970. */

export const INTERVALS = ['minute', 'hour', 'day', 'month'] as const;
export type Interval = (typeof INTERVALS)[number];

/** Reads a name of the IANA time zone database. */
export const readTimeZone: Reader<string> = reader({ type: 'string', default: 'UTC' }, (text) => {
  // An offset such as +02:00 is rejected, because it does not follow daylight saving time.
  if (/^[A-Za-z]/.test(text) && text.length <= 64 && IANAZone.isValidZone(text)) return text;
  throw new RangeError('expected a name of the IANA time zone database, such as Europe/Berlin');
});

/** Returns the start of the interval that contains `atMs`. */
export function startOf(interval: Interval, atMs: number, timeZone: string): number {
  return DateTime.fromMillis(atMs, { zone: timeZone }).startOf(interval).toMillis();
}

/** Returns the start of the interval that is `count` intervals later, or earlier if `count` is negative. */
export function stepFrom(interval: Interval, startMs: number, timeZone: string, count = 1): number {
  const moved = DateTime.fromMillis(startMs, { zone: timeZone }).plus({ [`${interval}s`]: count });
  return moved.startOf(interval).toMillis();
}

/** Returns the starts of the intervals in a range, at most `most` + 1. The first is at or before `fromMs`. */
export function startsWithin(
  interval: Interval,
  { fromMs, toMs, timeZone, most }: { fromMs: number; toMs: number; timeZone: string; most: number },
): readonly number[] {
  const starts: number[] = [];
  let next = startOf(interval, fromMs, timeZone);
  while (next < toMs && starts.length <= most) {
    starts.push(next);
    next = stepFrom(interval, next, timeZone);
  }
  return starts;
}

/** Returns the day in this time zone, such as `2026-11-21`. */
export function localDayOf(atMs: number, timeZone: string): string {
  return DateTime.fromMillis(atMs, { zone: timeZone }).toFormat('yyyy-MM-dd');
}
