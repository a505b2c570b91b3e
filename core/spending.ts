import type { Knex } from 'knex';
import { formatUsd } from './money';
import { dayOf, startOf, startsWithin, stepFrom } from './time-zones';

/** What an account spent by days of a time zone: calls when they began, sandboxes when a period of theirs was settled. */

const SHOWN_DAYS = 30;

/** A sum of each store's rows by day; `early` is of last month, up to where this month is now. */
const BY_DAY = (rows: string) => `
  SELECT width_bucket(at, :starts::timestamptz[]) AS day, count(*) AS calls, sum(amount_e8)::bigint AS amount_e8,
    (sum(amount_e8) FILTER (WHERE at >= :lastMonth AND at < :early))::bigint AS early_e8
  FROM (${rows}) AS spent GROUP BY 1`;

const CALLS = BY_DAY(`SELECT created_at AS at, cost_e8 AS amount_e8 FROM usage_records
  WHERE account_id = :accountId AND created_at >= :from AND created_at < :to`);

const SANDBOXES = BY_DAY(`SELECT settled_at AS at, amount_e8 FROM billing_periods
  WHERE account_id = :accountId AND status = 'SETTLED' AND settled_at >= :from AND settled_at < :to`);

interface DayRow {
  /** From 1. */
  readonly day: number;
  readonly calls: bigint;
  readonly amount_e8: bigint;
  readonly early_e8: bigint | null;
}

export async function readSpending(database: Knex, accountId: string, timeZone: string, now = new Date()) {
  const nowMs = now.getTime();
  const todayMs = startOf('day', nowMs, timeZone);
  const monthMs = startOf('month', nowMs, timeZone);
  const lastMonthMs = stepFrom('month', monthMs, timeZone, -1);
  const firstShownMs = stepFrom('day', todayMs, timeZone, 1 - SHOWN_DAYS);
  const fromMs = Math.min(lastMonthMs, firstShownMs);
  const starts = startsWithin('day', { fromMs, toMs: nowMs + 1, timeZone, most: 100 });
  const bindings = {
    accountId,
    starts: starts.map(toTime),
    from: toTime(fromMs),
    // A node whose clock is ahead of ours may have written some.
    to: toTime(stepFrom('day', todayMs, timeZone)),
    lastMonth: toTime(lastMonthMs),
    early: toTime(Math.min(lastMonthMs + nowMs - monthMs, monthMs)),
  };
  const ask = async (query: string) => (await database.raw<{ rows: DayRow[] }>(query, bindings)).rows;
  const [calls, sandboxes] = await Promise.all([ask(CALLS), ask(SANDBOXES)]);

  const amountOf = (rows: readonly DayRow[], index: number) =>
    rows.find(({ day }) => day === index + 1)?.amount_e8 ?? 0n;
  const days = starts.map((startMs, index) => ({
    startMs,
    callsE8: amountOf(calls, index),
    sandboxesE8: amountOf(sandboxes, index),
    calls: Number(calls.find(({ day }) => day === index + 1)?.calls ?? 0n),
  }));
  const between = (from: number, to: number) =>
    formatUsd(
      days.reduce(
        (sum, day) => (day.startMs >= from && day.startMs < to ? sum + day.callsE8 + day.sandboxesE8 : sum),
        0n,
      ),
    );
  const early = [...calls, ...sandboxes].reduce((sum, { early_e8 }) => sum + (early_e8 ?? 0n), 0n);
  return {
    todayUsd: between(todayMs, Number.POSITIVE_INFINITY),
    yesterdayUsd: between(stepFrom('day', todayMs, timeZone, -1), todayMs),
    monthUsd: between(monthMs, Number.POSITIVE_INFINITY),
    lastMonthUsd: between(lastMonthMs, monthMs),
    lastMonthToThisDayUsd: formatUsd(early),
    days: days.slice(-SHOWN_DAYS).map(({ startMs, callsE8, sandboxesE8, calls: count }) => ({
      day: dayOf(startMs, timeZone),
      callsUsd: formatUsd(callsE8),
      sandboxesUsd: formatUsd(sandboxesE8),
      calls: count,
    })),
  };
}

function toTime(atMs: number): string {
  return new Date(atMs).toISOString();
}
