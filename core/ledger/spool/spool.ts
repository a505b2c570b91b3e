import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { Counter, Gauge } from 'prom-client';
import { startLoop } from '../../loop';
import { metrics } from '../../metrics';
import type { Stop } from '../../resources';
import { type LeaseTimes, leaseTimes } from '../lease-times';
import type { Ledger } from '../ledger';
import { measuredSettle } from '../ledger-metrics';
import type { Drainer } from '../outbox/drainer';
import { insertUsage } from '../outbox/rows';
import { writtenCalls } from '../outbox/written-calls';
import type { Closing, SpoolFile } from './spool-file';
import type { SpoolFolder } from './spool-folder';

/**
 * What closes reservations, on this machine's disk before it is sent, until Postgres has its row: a ledger that loses what
 * it acknowledged is told again, and so is one that could not be reached before this process ended.
 */
export interface Spool {
  /** Before it is sent, and again when something else than its cost was charged. Never throws: a full disk takes a safety net away, not the service. */
  keep(closing: Closing): void;
  /** Postgres has what closes these; ids of others are passed over. */
  written(rids: readonly string[]): void;
  /** Drops what Postgres has by now. What is left waits for the next process that uses the folder. */
  readonly stop: Stop;
}

export interface SpoolOptions {
  readonly ledger: Ledger;
  readonly database: Knex;
  readonly drainer: Pick<Drainer, 'nudge'>;
  readonly log: Logger;
  /** Closed with the spool. */
  readonly folder: SpoolFolder;
  /** In the place of those of the usual lease. */
  readonly times?: Partial<LeaseTimes>;
  readonly maxBytes?: number;
}

const MAX_BYTES = 256 * 1_024 * 1_024;
const LOOK_UP_AT_ONCE = 5_000;

/** Outcomes that lead to no row: nothing more can be done. */
const DONE: ReadonlySet<string> = new Set(['recorded', 'nothing_held', 'unknown_reservation']);

const waitingGauge = new Gauge({
  name: 'tollgate_ledger_spool_waiting',
  help: 'Settles and releases on disk that Postgres was not seen to have.',
  aggregator: 'sum',
  registers: [metrics],
});
const resent = new Counter({
  name: 'tollgate_ledger_spool_resent_total',
  help: 'Settles and releases sent again, by what the ledger answered.',
  labelNames: ['outcome'],
  registers: [metrics],
});
const unkept = new Counter({
  name: 'tollgate_ledger_spool_unkept_total',
  help: 'Settles and releases that were sent without being kept on disk, for the spool is full or cannot be written.',
  registers: [metrics],
});

export function openSpool(options: SpoolOptions): Spool {
  const { ledger, database, drainer, log, folder, maxBytes = MAX_BYTES } = options;
  const { spoolEveryMs, resendAfterMs } = { ...leaseTimes(), ...options.times };
  const old: { readonly file: SpoolFile; readonly since: number }[] = folder.left.map((file) => ({
    file,
    since: Number.NEGATIVE_INFINITY,
  }));
  let isComplaining = false;
  let current: SpoolFile | undefined;
  if (old.length > 0) log.warn({ files: old.length }, 'settles of processes that are gone are taken over');

  const bytes = () => old.reduce((sum, { file }) => sum + file.bytes, current?.bytes ?? 0);

  const append = (closing: Closing) => {
    if (bytes() > maxBytes) throw new Error(`the spool has ${maxBytes} bytes`);
    const before = old.find(({ file }) => file.waiting.has(closing.rid))?.file;
    if (before !== undefined) return before.append(closing);
    current ??= folder.create();
    current.append(closing);
  };

  const rotate = () => {
    if (current === undefined) return;
    current.close();
    old.push({ file: current, since: performance.now() });
    current = undefined;
  };

  const check = async () => {
    rotate();
    for (const each of [...old]) {
      await dropWritten(database, each.file);
      if (each.file.waiting.size > 0 && performance.now() - each.since >= resendAfterMs) await resend(each.file);
      if (each.file.waiting.size > 0) continue;
      await each.file.remove();
      old.splice(old.indexOf(each), 1);
    }
    waitingGauge.set(old.reduce((sum, { file }) => sum + file.waiting.size, 0));
  };

  const resend = async (file: SpoolFile) => {
    for (const closing of lastOfEach(await file.closings())) {
      if (!file.waiting.has(closing.rid)) continue;
      const outcome = await (closing.kind === 'settle' ? settle(closing) : release(closing));
      resent.inc({ outcome });
      drainer.nudge(closing.accountId);
      // Everything else has an entry, and is done when Postgres has its row.
      if (DONE.has(outcome)) file.waiting.delete(closing.rid);
    }
  };

  /** An id the ledger does not know is closed for long, or its hold was lost with the ledger: Postgres knows which. */
  const settle = async (closing: Closing): Promise<string> => {
    const { outcome } = await measuredSettle(ledger, closing);
    if (outcome === 'released') return 'nothing_held';
    if (outcome !== 'unknown_reservation' || (await isWritten(database, closing))) return outcome;
    const late = await measuredSettle(ledger, { ...closing, isLate: true });
    const { rid, accountId, costE8 } = closing;
    log.warn({ rid, accountId, costE8: costE8.toString(), outcome: late.outcome }, 'a call was settled late');
    return late.outcome === 'settled' ? 'settled_late' : late.outcome;
  };

  /** A call that was released and whose hold nobody knows has no entry; its record is written all the same. */
  const release = async (closing: Closing): Promise<string> => {
    const { outcome } = await ledger.release(closing);
    if (outcome !== 'tombstoned' || (await isWritten(database, closing))) return outcome;
    if (closing.record !== '') await insertUsage(database, [{ record: closing.record, rid: null, costE8: 0n }]);
    return 'recorded';
  };

  const loop = startLoop(check, {
    everyMs: spoolEveryMs,
    whenFailed: (error) => log.debug({ reason: String(error) }, 'settles on disk cannot be looked after now'),
  });
  return {
    keep: (closing) => {
      try {
        append(closing);
        isComplaining = false;
      } catch (error) {
        unkept.inc();
        if (!isComplaining) log.error({ reason: String(error) }, 'settles are sent without being kept on disk');
        isComplaining = true;
      }
    },
    written: (rids) => {
      for (const rid of rids)
        if (current?.waiting.delete(rid) !== true) old.some(({ file }) => file.waiting.delete(rid));
    },
    stop: async () => {
      await loop.stop();
      await check().catch((error) => log.warn({ reason: String(error) }, 'settles wait on disk for the next start'));
      await folder.close();
    },
  };
}

function lastOfEach(closings: readonly Closing[]): Iterable<Closing> {
  return new Map(closings.map((closing) => [closing.rid, closing])).values();
}

/** A reservation has one closing row, whatever closed it. */
async function dropWritten(database: Knex, { waiting }: SpoolFile): Promise<void> {
  const entries = [...waiting].map(([rid, accountId]) => ({ rid, accountId }));
  for (let from = 0; from < entries.length; from += LOOK_UP_AT_ONCE) {
    for (const rid of await writtenCalls(database, entries.slice(from, from + LOOK_UP_AT_ONCE))) waiting.delete(rid);
  }
}

async function isWritten(database: Knex, { rid, accountId }: Closing): Promise<boolean> {
  return (await writtenCalls(database, [{ rid, accountId }])).size > 0;
}
