import { UsageError } from './failure';

/** Returns an option's time as text. A day alone means its first moment, UTC. */
export function toTime(text: string | undefined): string | undefined {
  return text !== undefined && /^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text;
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
