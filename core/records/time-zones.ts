import { DateTime, IANAZone } from 'luxon';
import { type Reader, reader } from '../http/query';

/** Days, hours and months as people in one place of the world count them. Times are milliseconds since 1970. */

export const INTERVALS = ['minute', 'hour', 'day', 'month'] as const;
export type Interval = (typeof INTERVALS)[number];

/** A name of the IANA time zone database. */
export const readTimeZone: Reader<string> = reader({ type: 'string', default: 'UTC' }, (text) => {
  // Offsets such as +02:00 know nothing of summer time.
  if (/^[A-Za-z]/.test(text) && text.length <= 64 && IANAZone.isValidZone(text)) return text;
  throw new RangeError('expected a name of the IANA time zone database, such as Europe/Berlin');
});

/** Returns the moment at which the interval that `atMs` lies in began. */
export function startOf(interval: Interval, atMs: number, timeZone: string): number {
  return DateTime.fromMillis(atMs, { zone: timeZone }).startOf(interval).toMillis();
}

/** Returns the start of the interval `count` later, or earlier. */
export function stepFrom(interval: Interval, startMs: number, timeZone: string, count = 1): number {
  const moved = DateTime.fromMillis(startMs, { zone: timeZone }).plus({ [`${interval}s`]: count });
  return moved.startOf(interval).toMillis();
}

/** Where the intervals begin that a range touches, the first one at or before `fromMs`; at most `most` + 1 of them. */
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

/** Returns the day there, such as `2026-11-21`. */
export function dayOf(atMs: number, timeZone: string): string {
  return DateTime.fromMillis(atMs, { zone: timeZone }).toFormat('yyyy-MM-dd');
}
