import { Option } from 'commander';
import { UsageError } from './failure';

export const FROM = new Option(
  '--from <time>',
  'only from this time on, such as 2026-11-20 (UTC) or 2026-11-20T08:00:00+01:00',
);
export const TO = new Option('--to <time>', 'only before this time');

/** Returns an option's time as text. A day alone means its first moment, UTC. */
export function toTime(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined;
  return /^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text;
}

/** The help text for times of expiry. */
export const EXPIRY = 'a time from now such as 90d or 12h, a time such as 2026-12-31, or "never"';

const UNITS = { h: 3_600_000, d: 86_400_000 } as const;

/** Reads a time of expiry: a time, a duration from now such as 90d or 12h, or null for "never". */
export function toExpiry(text: string): string | null {
  if (text === 'never') return null;
  const [, count, unit] = /^([1-9]\d{0,5})([dh])$/.exec(text) ?? [];
  if (count !== undefined) return new Date(Date.now() + Number(count) * UNITS[unit === 'h' ? 'h' : 'd']).toISOString();
  if (!/^\d{4}-/.test(text)) throw new UsageError(`--expires: expected ${EXPIRY}.`);
  return toTime(text) ?? null;
}
