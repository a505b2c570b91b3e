import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { Counter, Gauge } from 'prom-client';
import { startLoop } from '../../base/loop';
import { metrics } from '../../base/metrics';
import type { Stop } from '../../base/resources';
import type { AllowanceStore } from '../allowances/allowance-store';
import { type LeaseTimes, leaseTimes } from '../lease-times';
import type { Calls } from '../ledger';
import { measuredSettle } from '../ledger-metrics';
import { expiredRecord, insertUsage, writtenCalls } from '../outbox/rows';
import type { Shipper } from '../outbox/shipper';
import type { Closing, Opening, SpoolFile, SpoolLine } from './spool-file';
import type { SpoolFolder } from './spool-folder';
import { type KnownFile, readAllowances, takeOver } from './take-over';

/**
 * Keeps settles and releases on this machine's disk, from before a process sends them until Postgres has their rows. If the ledger loses
 * what it acknowledged, the spool sends them again. It also sends those that a process could not send before it ended.
 */
export interface Spool {
  /**
   * Keeps a settle or release on disk before it is sent, and again if its charge differs from its cost. It also keeps calls that an
   * allowance (money held in advance) admitted, and the reports of allowances. Resolves when the line is on disk: all lines of one turn of
   * the event loop are one write. It never rejects, because a full disk removes a safety net and must not stop the service.
   */
  keep(line: SpoolLine): Promise<void>;
  /** Deletes the settles and releases of these reservations, because Postgres has their entries now. Ignores unknown ids. */
  written(rids: readonly string[]): void;
  /** Deletes the lines whose entries Postgres has by now, and stops the spool. The remaining lines wait for the next process that opens the folder. */
  readonly stop: Stop;
}

interface SpoolOptions {
  /** The shared ledger of all nodes. */
  readonly ledger: Pick<Calls, 'settle' | 'release'>;
  /** The store that receives reports of allowances (money held in advance). `has` returns whether this process itself reports a given allowance. */
  readonly allowances?: { readonly store: AllowanceStore; has(generation: string): boolean } | undefined;
  readonly database: Knex;
  readonly shipper: Pick<Shipper, 'nudge'>;
  readonly log: Logger;
  /** The folder with the spool files. `stop` closes the folder. */
  readonly folder: SpoolFolder;
  /** Lease times that replace the default ones. */
  readonly times?: Partial<LeaseTimes>;
  readonly maxBytes?: number;
}

interface OldFile extends KnownFile {
  readonly since: number;
}

const MAX_BYTES = 256 * 1_024 * 1_024;
const LOOK_UP_AT_ONCE = 5_000;

/** Outcomes of a settle or release after which no row follows in Postgres. The spool then deletes the settle or release at once. */
const DONE: ReadonlySet<string> = new Set(['recorded', 'nothing_held', 'unknown_reservation']);

const waitingGauge = new Gauge({
  name: 'tollgate_ledger_spool_waiting',
  help: 'Settles and releases in the spool that are not confirmed in Postgres.',
  aggregator: 'sum',
  registers: [metrics],
});
const resent = new Counter({
  name: 'tollgate_ledger_spool_resent_total',
  help: 'Settles and releases that were sent again from the spool, by the answer of the ledger.',
  labelNames: ['outcome'],
  registers: [metrics],
});
const unkept = new Counter({
  name: 'tollgate_ledger_spool_unkept_total',
  help: 'Settles and releases that were sent without a copy on disk because the spool is full or not writable.',
  registers: [metrics],
});

export function openSpool(options: SpoolOptions): Spool {
  const { ledger, allowances, database, shipper, log, folder, maxBytes = MAX_BYTES } = options;
  const { spoolEveryMs, resendAfterMs } = { ...leaseTimes(), ...options.times };
  const old: OldFile[] = folder.left.map((file) => ({
    file,
    isLeft: true,
    since: Number.NEGATIVE_INFINITY,
  }));
  let isComplaining = false;
  let current: SpoolFile | undefined;
  if (old.length > 0) log.warn({ files: old.length }, 'resuming settlements that stopped processes left on disk');

  const bytes = () => old.reduce((sum, { file }) => sum + file.bytes, current?.bytes ?? 0);

  const fileOf = ({ rid }: SpoolLine): SpoolFile => {
    if (current?.waiting.has(rid) === true) return current;
    const before = old.find(({ file }) => file.waiting.has(rid))?.file;
    if (before !== undefined) return before;
    current ??= folder.create();
    return current;
  };

  /** Spool files with lines that are not on disk yet. `flushed` resolves when those lines are on disk. */
  const unwritten = new Set<SpoolFile>();
  let flushed: Promise<void> | undefined;

  const flush = () => {
    flushed = undefined;
    for (const file of unwritten) {
      try {
        file.flush();
        isComplaining = false;
      } catch (error) {
        complain(error);
      }
    }
    unwritten.clear();
  };

  const complain = (error: unknown) => {
    unkept.inc();
    if (!isComplaining)
      log.error(
        { reason: String(error) },
        'settlements are sent without a copy on disk because the spool cannot be written',
      );
    isComplaining = true;
  };

  const append = (line: SpoolLine): Promise<void> => {
    try {
      if (bytes() > maxBytes) throw new Error(`the spool is full: it has more than ${maxBytes} bytes`);
      const file = fileOf(line);
      file.append(line);
      unwritten.add(file);
    } catch (error) {
      complain(error);
    }
    flushed ??= new Promise((resolve) => {
      setImmediate(() => {
        flush();
        resolve();
      });
    });
    return flushed;
  };

  const rotate = () => {
    if (current === undefined) return;
    flush();
    current.close();
    old.push({ file: current, isLeft: false, since: performance.now() });
    current = undefined;
  };

  const check = async () => {
    rotate();
    for (const { file } of old) await dropWritten(database, file);
    const due = old.filter(({ file, since }) => file.waiting.size > 0 && performance.now() - since >= resendAfterMs);
    await reportAllowances(due);
    for (const each of [...old]) {
      if (due.includes(each)) await resend(each.file);
      if (each.file.waiting.size > 0) continue;
      await each.file.remove();
      old.splice(old.indexOf(each), 1);
    }
    waitingGauge.set(old.reduce((sum, { file }) => sum + file.waiting.size, 0));
  };

  /** Ids of allowances (money held in advance) that the ledger no longer knows. The spool settles their calls late, one by one. */
  const lost = new Set<string>();

  /** Reports calls to the ledger that stopped processes admitted from allowances (money held in advance) and did not report. */
  const reportAllowances = async (files: readonly OldFile[]) => {
    if (allowances === undefined) return;
    const { store, has } = allowances;
    const generations = new Set<string>();
    for (const { file } of files)
      for (const { generation } of file.waiting.values())
        if (generation !== undefined && !has(generation) && !lost.has(generation)) generations.add(generation);
    if (generations.size === 0) return;
    // The file that this process now writes is read, too, because the ledger may have just lost an allowance of this process.
    rotate();
    for (const left of await readAllowances(old, generations)) {
      const { accountId, generation, openings, closings, reports } = left;
      const outcome = await takeOver(left, store);
      shipper.nudge(accountId);
      // Deletes a report if its allowance is lost or if none of its calls is waiting, because such a report may never reach Postgres.
      const over = reports.filter(({ rids }) => outcome === 'lost' || !rids.some(waits));
      for (const { rid } of over) forget(rid);
      if (outcome === 'lost') {
        lost.add(generation);
        log.warn(
          { generation, accountId },
          'the ledger no longer has an allowance of this node; its calls are settled one by one',
        );
        for (const [rid, opening] of openings) if (!closings.has(rid)) await expire(opening);
      }
    }
  };

  const waits = (rid: string) => old.some(({ file }) => file.waiting.has(rid));
  const forget = (rid: string) => {
    for (const { file } of old) file.waiting.delete(rid);
  };

  /** Writes the record of a call that was open when its process died and whose hold the ledger does not know. The call costs nothing. */
  const expire = async ({ rid, facts }: Opening) => {
    await insertUsage(database, [{ record: expiredRecord(facts), rid: null, costE8: 0n }]);
    forget(rid);
  };

  /** Returns whether the reports of an allowance (money held in advance) send this call to the ledger, so that `resend` must not. */
  const isReported = ({ waiting }: SpoolFile, rid: string) => {
    const generation = waiting.get(rid)?.generation;
    return allowances !== undefined && generation !== undefined && !lost.has(generation);
  };

  const resend = async (file: SpoolFile) => {
    if ([...file.waiting.keys()].every((rid) => isReported(file, rid))) return;
    for (const closing of lastOfEach(await file.lines())) {
      if (!file.waiting.has(closing.rid) || isReported(file, closing.rid)) continue;
      const outcome = await (closing.kind === 'settle' ? settle(closing) : release(closing));
      resent.inc({ outcome });
      shipper.nudge(closing.accountId);
      // Every outcome outside `DONE` has a ledger entry. The spool deletes the line of this settle or release when Postgres has that entry's row.
      if (DONE.has(outcome)) file.waiting.delete(closing.rid);
    }
  };

  /** Settles a call again. If the ledger does not know its reservation, Postgres shows whether the reservation was closed long ago or lost. */
  const settle = async (closing: Closing): Promise<string> => {
    const { outcome } = await measuredSettle(ledger, closing);
    if (outcome === 'released') return 'nothing_held';
    if (outcome !== 'unknown_reservation' || (await isWritten(database, closing))) return outcome;
    const late = await measuredSettle(ledger, { ...closing, isLate: true });
    const { rid, accountId, costE8 } = closing;
    log.warn(
      { rid, accountId, costE8: costE8.toString(), outcome: late.outcome },
      'a call was settled late, from the spool',
    );
    return late.outcome === 'settled' ? 'settled_late' : late.outcome;
  };

  /** Releases a call again. If the ledger does not know the hold, it writes no entry, so this function writes the call's usage record itself. */
  const release = async (closing: Closing): Promise<string> => {
    const { outcome } = await ledger.release(closing);
    if (outcome !== 'tombstoned' || (await isWritten(database, closing))) return outcome;
    if (closing.record !== '') await insertUsage(database, [{ record: closing.record, rid: null, costE8: 0n }]);
    return 'recorded';
  };

  const loop = startLoop(check, {
    everyMs: spoolEveryMs,
    whenFailed: (error) => log.debug({ reason: String(error) }, 'settlements on disk cannot be sent; they are retried'),
  });
  return {
    keep: append,
    written: (rids) => {
      for (const rid of rids)
        if (current?.waiting.delete(rid) !== true) old.some(({ file }) => file.waiting.delete(rid));
    },
    stop: async () => {
      await loop.stop();
      await check().catch((error) =>
        log.warn({ reason: String(error) }, 'settlements wait on disk for the next start'),
      );
      await folder.close();
    },
  };
}

function lastOfEach(lines: readonly SpoolLine[]): Iterable<Closing> {
  const closings = lines.flatMap((line) => (line.kind === 'settle' || line.kind === 'release' ? [line] : []));
  return new Map(closings.map((closing) => [closing.rid, closing])).values();
}

/** Deletes the lines of reservations that Postgres has closed. A reservation has one closing row: from a settle, a release or an expiry. */
async function dropWritten(database: Knex, { waiting }: SpoolFile): Promise<void> {
  const entries = [...waiting].map(([rid, { accountId }]) => ({ rid, accountId }));
  for (let from = 0; from < entries.length; from += LOOK_UP_AT_ONCE) {
    for (const rid of await writtenCalls(database, entries.slice(from, from + LOOK_UP_AT_ONCE))) waiting.delete(rid);
  }
}

async function isWritten(database: Knex, { rid, accountId }: Closing): Promise<boolean> {
  return (await writtenCalls(database, [{ rid, accountId }])).size > 0;
}
