import type { Interval, Time } from './shapes';

/** Formats times in the user's time zone. */

export const TIME_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

const LOCALE = 'en-US';
const format = (options: Intl.DateTimeFormatOptions) =>
  new Intl.DateTimeFormat(LOCALE, { hourCycle: 'h23', ...options });

const DAY = format({ month: 'short', day: 'numeric' });
const DATE = format({ month: 'short', day: 'numeric', year: 'numeric' });
const CLOCK = format({ hour: '2-digit', minute: '2-digit' });
const SECONDS = format({ hour: '2-digit', minute: '2-digit', second: '2-digit' });
const MOMENT = format({ month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit' });
const WHOLE = format({
  year: 'numeric',
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  timeZoneName: 'short',
});
const MONTH = format({ month: 'short', year: 'numeric' });

/** Formats a date; omits the year if it is this year. */
export function showDate(time: Time | number): string {
  const at = new Date(time);
  return (at.getFullYear() === new Date().getFullYear() ? DAY : DATE).format(at);
}

export const showDay = (time: Time | number) => DAY.format(new Date(time));
export const showClock = (time: Time | number) => CLOCK.format(new Date(time));
export const showSeconds = (time: Time | number) => SECONDS.format(new Date(time));
export const showMoment = (time: Time | number) => MOMENT.format(new Date(time));
export const showWhole = (time: Time | number) => WHOLE.format(new Date(time));

/** Formats a calendar day such as `2026-11-21`. */
export function showCalendarDay(day: string): string {
  return new Intl.DateTimeFormat(LOCALE, { month: 'short', day: 'numeric', timeZone: 'UTC' }).format(new Date(day));
}

/** Formats the start of a chart's interval: as a month, a day, or a day with a clock time. */
export function showStart(time: Time | number, interval: Interval): string {
  if (interval === 'month') return MONTH.format(new Date(time));
  if (interval === 'day') return showDay(time);
  return `${showDay(time)}, ${showClock(time)}`;
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const;

const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' });

/** Formats a time relative to now, such as `3 min ago`. */
export function showAgo(time: Time, nowMs = Date.now()): string {
  const seconds = Math.round((new Date(time).getTime() - nowMs) / 1_000);
  if (Math.abs(seconds) >= 30 * 86_400) return showDate(time);
  const unit = UNITS.find(([, size]) => Math.abs(seconds) >= size);
  if (unit === undefined) return Math.abs(seconds) < 10 ? 'just now' : relative(seconds, 'second');
  return relative(Math.trunc(seconds / unit[1]), unit[0]);
}

function relative(count: number, unit: Intl.RelativeTimeFormatUnit): string {
  return RELATIVE.format(count, unit).replace('.', '');
}

/** Formats a duration, such as `412 ms`, `3.41 s`, `4 min 10 s`, `2 h 5 min`. */
export function showDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  const seconds = Math.round(ms / 1_000);
  const [days, hours, minutes] = [
    Math.floor(seconds / 86_400),
    Math.floor((seconds % 86_400) / 3_600),
    Math.floor((seconds % 3_600) / 60),
  ];
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return `${minutes} min ${seconds % 60} s`;
}

/** Formats a duration. null means not measured and is shown as a dash. */
export const showMaybeDuration = (ms: number | null) => (ms === null ? '–' : showDuration(ms));

/** Formats a time for `<input type="datetime-local">`, in the user's time zone. */
export function toLocalInput(time: Time): string {
  const at = new Date(time);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Reads the text of `<input type="datetime-local">` in the user's time zone; undefined if it is no valid time. */
export function fromLocalInput(text: string): Time | undefined {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}
