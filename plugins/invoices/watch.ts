import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { Counter, Gauge } from 'prom-client';
import { type Loop, startLoop } from '../../core/base/loop';
import { metrics } from '../../core/base/metrics';
import { formatUsd } from '../../core/base/money';
import type { Upstream } from '../../core/catalog/catalog';
import { raiseEvents } from '../../core/events/raise';
import { type Comparison, type CountDifference, compareUpstream, type InvoiceSources } from './compare';
import { DAY_MS, utcDayOf } from './report';

const LOOK_EVERY_MS = 3_600_000;
const FIRST_AFTER_MS = 60_000;
/** How long a process's claim on the comparison of a day lasts. Later another process may compare the day, because the first may have died. */
const CLAIM_MINUTES = 30;
const MAX_LOGGED = 10;

const differences = new Gauge({
  name: 'tollgate_invoice_difference_usd',
  help: 'Amount in USD that a vendor charged above the usage records on the last compared day; only the comparing process exposes it.',
  labelNames: ['upstream'],
  registers: [metrics],
});

/** The last day that this process compared, by upstream. */
const comparedHere = new Map<string, string>();

const alarms = new Counter({
  name: 'tollgate_invoice_alarms_total',
  help: "Days whose invoice differs from the records by more than the upstream's alarmAboveUsd.",
  labelNames: ['upstream'],
  registers: [metrics],
});

const failures = new Counter({
  name: 'tollgate_invoice_failures_total',
  help: "How often a vendor's report could not be compared.",
  labelNames: ['upstream'],
  registers: [metrics],
});

type WatchedBooks = InvoiceSources & { readonly log: Logger };

/**
 * Starts the loop that compares the last whole day: the vendor's report of each upstream with `reporting`, and the gateway's records. Only
 * one process compares each day.
 */
export function startInvoiceWatch(books: WatchedBooks, afterMs: number): Loop {
  return startLoop((signal) => compareLastDay(books, afterMs, Date.now(), signal), {
    everyMs: LOOK_EVERY_MS,
    firstAfterMs: FIRST_AFTER_MS,
    whenFailed: (error) =>
      books.log.warn({ reason: String(error) }, 'invoices could not be compared; the comparison is retried'),
  });
}

/** Compares the last day that ended at least `afterMs` ago, for each upstream. Skips an upstream if a process has already compared that day. */
export async function compareLastDay(
  books: WatchedBooks,
  afterMs: number,
  nowMs: number,
  signal?: AbortSignal,
): Promise<void> {
  const day = utcDayOf(nowMs - afterMs - DAY_MS);
  for (const upstream of books.catalog.upstreams) {
    if (isEnding(signal)) return;
    if (upstream.reporting?.credential === undefined) continue;
    if (!(await claim(books.database, upstream.name, day))) {
      // Expose the metric of the differences only in the process that compared the newest day; every other process removes its own.
      if (comparedHere.get(upstream.name) !== day) differences.remove({ upstream: upstream.name });
      continue;
    }
    try {
      const comparison = await compareUpstream(books, upstream, { from: day, to: day }, signal);
      await report(books, upstream, day, comparison);
    } catch (error) {
      await giveBack(books.database, upstream.name, day);
      if (isEnding(signal)) return;
      failures.inc({ upstream: upstream.name });
      books.log.warn(
        { upstream: upstream.name, day, reason: String(error) },
        "a vendor's invoice could not be compared; the comparison is retried in an hour",
      );
    }
  }
}

/** Tells whether the signal is aborted at the moment of the call, because it may abort while the process reads a report. */
function isEnding(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

async function claim(database: Knex, upstream: string, day: string): Promise<boolean> {
  const { rows } = await database.raw<{ rows: object[] }>(
    `INSERT INTO invoice_days AS known (upstream, day) VALUES (:upstream, :day::date)
     ON CONFLICT (upstream, day) DO UPDATE SET claimed_at = now()
       WHERE known.compared_at IS NULL AND known.claimed_at < now() - interval '${CLAIM_MINUTES} minutes'
     RETURNING 1`,
    { upstream, day },
  );
  return rows.length > 0;
}

async function giveBack(database: Knex, upstream: string, day: string): Promise<void> {
  await database.raw('DELETE FROM invoice_days WHERE upstream = :upstream AND day = :day::date', { upstream, day });
}

async function report(
  { database, log }: WatchedBooks,
  { name }: Upstream,
  day: string,
  comparison: Comparison,
): Promise<void> {
  const [cost] = comparison.costs;
  const differenceE8 = cost?.differenceE8 ?? 0n;
  differences.set({ upstream: name }, Number(formatUsd(differenceE8)));
  comparedHere.set(name, day);
  if (cost?.isAlarm === true) {
    alarms.inc({ upstream: name });
    const counts = comparison.counts.slice(0, MAX_LOGGED).map(inWords);
    const more = Math.max(0, comparison.counts.length - MAX_LOGGED);
    log.error(
      { upstream: name, day, differenceUsd: formatUsd(differenceE8), counts, more },
      "a vendor's invoice differs from the records by more than the bound: run tollgate invoices compare",
    );
    const data = { upstream: name, day, differenceUsd: formatUsd(differenceE8) };
    const event = { type: 'invoice.differs', once: `${name} ${day}`, data } as const;
    // The day then counts as not compared, and is compared again.
    if (!(await raiseEvents(database, log, [event]))) throw new Error('the event of a difference could not be written');
  }
  await database.raw(
    `UPDATE invoice_days SET compared_at = now(), difference_e8 = :difference::numeric
     WHERE upstream = :upstream AND day = :day::date`,
    { upstream: name, day, difference: differenceE8.toString() },
  );
}

function inWords({ model, meter, difference, causes }: CountDifference): string {
  return `${model} ${meter} ${difference}: ${causes.map(({ cause }) => cause).join(' or ')}`;
}
