import type { Knex } from 'knex';
import { formatUsd } from './money';
import { dayOf, startOf, startsWithin, stepFrom } from './time-zones';

/** What an account spent by days of a time zone: calls when they began, sandboxes when a period of theirs was settled. */

const SHOWN_DAYS = 30;

/**
 * Day by day, each from the index that holds what is summed: asked for all days at once, the database would read every record.
 * Day 0 is not one: it is last month, up to where this month is now.
 */
const byDay = (spent: string) => `
  SELECT spent.day, spent.calls, coalesce(spent.amount_e8, 0)::bigint AS amount_e8
  FROM unnest(:froms::timestamptz[], :tos::timestamptz[]) WITH ORDINALITY AS slot (from_at, to_at, number)
  CROSS JOIN LATERAL (SELECT slot.number::int - 1 AS day, count(*) AS calls, sum(amount_e8) AS amount_e8 FROM (${spent}) AS each) AS spent`;

const CALLS = byDay(`SELECT cost_e8 AS amount_e8 FROM usage_records
  WHERE account_id = :accountId AND created_at >= slot.from_at AND created_at < slot.to_at`);

const SANDBOXES = byDay(`SELECT amount_e8 FROM billing_periods
  WHERE account_id = :accountId AND status = 'SETTLED' AND settled_at >= slot.from_at AND settled_at < slot.to_at`);

interface DayRow {
  readonly day: number;
  readonly calls: bigint;
  readonly amount_e8: bigint;
}

export async function readSpending(database: Knex, accountId: string, timeZone: string, now = new Date()) {
  const nowMs = now.getTime();
  const todayMs = startOf('day', nowMs, timeZone);
  const tomorrowMs = stepFrom('day', todayMs, timeZone);
  const monthMs = startOf('month', nowMs, timeZone);
  const lastMonthMs = stepFrom('month', monthMs, timeZone, -1);
  const fromMs = Math.min(lastMonthMs, stepFrom('day', todayMs, timeZone, 1 - SHOWN_DAYS));
  // Until tomorrow: a node whose clock is ahead of ours may have written some.
  const starts = startsWithin('day', { fromMs, toMs: tomorrowMs, timeZone, most: 100 });
  const froms = [lastMonthMs, ...starts].map(toTime);
  const tos = [Math.min(lastMonthMs + nowMs - monthMs, monthMs), ...starts.slice(1), tomorrowMs].map(toTime);
  const ask = async (query: string) =>
    (await database.raw<{ rows: DayRow[] }>(query, { accountId, froms, tos })).rows.sort(
      (one, other) => one.day - other.day,
    );
  const [[earlyCalls, ...calls], [earlySandboxes, ...sandboxes]] = await Promise.all([ask(CALLS), ask(SANDBOXES)]);

  const days = starts.map((startMs, index) => ({
    startMs,
    callsE8: calls[index]?.amount_e8 ?? 0n,
    sandboxesE8: sandboxes[index]?.amount_e8 ?? 0n,
    calls: Number(calls[index]?.calls ?? 0n),
  }));
  const between = (from: number, to: number) =>
    formatUsd(
      days
        .filter(({ startMs }) => startMs >= from && startMs < to)
        .reduce((sum, { callsE8, sandboxesE8 }) => sum + callsE8 + sandboxesE8, 0n),
    );
  return {
    todayUsd: between(todayMs, tomorrowMs),
    yesterdayUsd: between(stepFrom('day', todayMs, timeZone, -1), todayMs),
    monthUsd: between(monthMs, tomorrowMs),
    lastMonthUsd: between(lastMonthMs, monthMs),
    lastMonthToThisDayUsd: formatUsd((earlyCalls?.amount_e8 ?? 0n) + (earlySandboxes?.amount_e8 ?? 0n)),
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
