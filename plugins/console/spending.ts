import type { Knex } from 'knex';
import { formatUsd } from '../../core/base/money';
import { localDayOf, startOf, startsWithin, stepFrom } from '../../core/records/time-zones';
import { readSums } from '../../core/records/usage-sums';

/** The spending of an account per day in a time zone. A call counts on the day it began, a sandbox period on the day it was settled. */

const SHOWN_DAYS = 30;

/** The SQL that sums the spending on sandboxes in each time slot. It uses the index of settled billing periods. */
const SANDBOXES = `
  SELECT slot.number::int - 1 AS slot, spent.amount_e8
  FROM unnest(:froms::timestamptz[], :tos::timestamptz[]) WITH ORDINALITY AS slot (from_at, to_at, number)
  CROSS JOIN LATERAL (SELECT coalesce(sum(amount_e8), 0)::bigint AS amount_e8 FROM billing_periods
    WHERE account_id = :accountId AND (:memberId::uuid IS NULL OR key_id IN (SELECT id FROM api_keys WHERE member_id = :memberId))
      AND status = 'SETTLED' AND settled_at >= slot.from_at AND settled_at < slot.to_at) AS spent`;

/** Whose spending is read: an account's, or only what the keys of one of its members spent. */
interface Spender {
  readonly accountId: string;
  readonly memberId?: string | undefined;
}

export async function readSpending(
  database: Knex,
  { accountId, memberId }: Spender,
  timeZone: string,
  now = new Date(),
) {
  const nowMs = now.getTime();
  const todayMs = startOf('day', nowMs, timeZone);
  const tomorrowMs = stepFrom('day', todayMs, timeZone);
  const monthMs = startOf('month', nowMs, timeZone);
  const lastMonthMs = stepFrom('month', monthMs, timeZone, -1);
  const fromMs = Math.min(lastMonthMs, stepFrom('day', todayMs, timeZone, 1 - SHOWN_DAYS));
  // The last day ends at midnight instead of now, because a node whose clock is ahead may have written later records.
  const starts = startsWithin('day', { fromMs, toMs: tomorrowMs, timeZone, most: 100 });
  const slots = [
    // The previous month, up to the same time in the month as now.
    { fromMs: lastMonthMs, toMs: Math.min(lastMonthMs + nowMs - monthMs, monthMs) },
    ...starts.map((startMs, index) => ({ fromMs: startMs, toMs: starts[index + 1] ?? tomorrowMs })),
  ];
  const [calls, { rows: sandboxes }] = await Promise.all([
    readSums(database, { account: accountId, memberId }, slots),
    database.raw<{ rows: { slot: number; amount_e8: bigint }[] }>(SANDBOXES, {
      accountId,
      memberId: memberId ?? null,
      froms: slots.map(({ fromMs }) => toTime(fromMs)),
      tos: slots.map(({ toMs }) => toTime(toMs)),
    }),
  ]);
  const sandboxesE8 = new Map(sandboxes.map(({ slot, amount_e8: amountE8 }) => [slot, amountE8]));
  const [early, ...days] = slots.map(({ fromMs }, slot) => ({
    startMs: fromMs,
    callsE8: calls[slot]?.cost_e8 ?? 0n,
    sandboxesE8: sandboxesE8.get(slot) ?? 0n,
    calls: Number(calls[slot]?.calls ?? 0n),
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
    lastMonthToThisDayUsd: formatUsd((early?.callsE8 ?? 0n) + (early?.sandboxesE8 ?? 0n)),
    days: days.slice(-SHOWN_DAYS).map(({ startMs, callsE8, sandboxesE8, calls: count }) => ({
      day: localDayOf(startMs, timeZone),
      callsUsd: formatUsd(callsE8),
      sandboxesUsd: formatUsd(sandboxesE8),
      calls: count,
    })),
  };
}

function toTime(atMs: number): string {
  return new Date(atMs).toISOString();
}
