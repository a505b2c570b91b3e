import { type Reader, reader } from './query';

/** Days, hours and months as people in one place of the world count them. Times are milliseconds since 1970. */

export const INTERVALS = ['minute', 'hour', 'day', 'month'] as const;
export type Interval = (typeof INTERVALS)[number];

/** A name of the IANA time zone database. */
export const readTimeZone: Reader<string> = reader({ type: 'string', default: 'UTC' }, (text) => {
  // Offsets such as +02:00 know nothing of summer time.
  if (/^[A-Za-z]/.test(text) && text.length <= 64 && isKnown(text)) return text;
  throw new RangeError('expected a name of the IANA time zone database, such as Europe/Berlin');
});

function isKnown(timeZone: string): boolean {
  try {
    return formatOf(timeZone) !== undefined;
  } catch {
    return false;
  }
}

/** Year, month (from 1), day, hour, minute on the wall there. */
type Wall = readonly [year: number, month: number, day: number, hour: number, minute: number];

/** The moment at which the interval that `atMs` lies in began. */
export function startOf(interval: Interval, atMs: number, timeZone: string): number {
  if (interval === 'minute') return atMs - modulo(atMs, 60_000);
  // Of the hour that comes twice in autumn there are two: counted back from the moment, not looked for on the wall.
  if (interval === 'hour') return atMs - modulo(atMs + offsetAt(atMs, timeZone), 3_600_000);
  const [year, month, day] = wallAt(atMs, timeZone);
  return momentOf(interval === 'day' ? [year, month, day, 0, 0] : [year, month, 1, 0, 0], timeZone);
}

/** The start of the one `count` later, or earlier. */
export function stepFrom(interval: Interval, startMs: number, timeZone: string, count = 1): number {
  if (interval === 'minute') return startMs + count * 60_000;
  if (interval === 'hour') return startMs + count * 3_600_000;
  const [year, month, day] = wallAt(startMs, timeZone);
  const wall: Wall = interval === 'day' ? [year, month, day + count, 0, 0] : [year, month + count, 1, 0, 0];
  return momentOf(wall, timeZone);
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

/** `2026-11-21`, there. */
export function dayOf(atMs: number, timeZone: string): string {
  const [year, month, day] = wallAt(atMs, timeZone);
  return `${String(year).padStart(4, '0')}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}`;
}

/** The first moment at which the wall shows this, or, where clocks were put forward over it, something later. */
function momentOf([year, month, day, hour, minute]: Wall, timeZone: string): number {
  const wallMs = Date.UTC(year, month - 1, day, hour, minute);
  const candidates = [-DAY_MS, 0, DAY_MS].map((near) => wallMs - offsetAt(wallMs + near, timeZone));
  const fitting = candidates.filter((atMs) => atMs + offsetAt(atMs, timeZone) === wallMs);
  return fitting.length > 0 ? Math.min(...fitting) : Math.max(...candidates);
}

const DAY_MS = 86_400_000;

/** What the wall is ahead of UTC. */
function offsetAt(atMs: number, timeZone: string): number {
  const [year, month, day, hour, minute] = wallAt(atMs, timeZone);
  return Date.UTC(year, month - 1, day, hour, minute) - (atMs - modulo(atMs, 60_000));
}

function wallAt(atMs: number, timeZone: string): Wall {
  const parts = new Map(
    formatOf(timeZone)
      .formatToParts(atMs)
      .map(({ type, value }) => [type, Number(value)]),
  );
  const of = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? 0;
  return [of('year'), of('month'), of('day'), of('hour'), of('minute')];
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** Making one takes longer than using it; there are some 600 names, whatever callers send. @throws RangeError */
function formatOf(timeZone: string): Intl.DateTimeFormat {
  let format = formats.get(timeZone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
    });
    if (formats.size < 1_000) formats.set(timeZone, format);
  }
  return format;
}

function modulo(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
}
