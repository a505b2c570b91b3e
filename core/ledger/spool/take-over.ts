import { getOrInsert } from '../../base/collections';
import { newId } from '../../base/ids';
import { digestOf } from '../allowances/allowance';
import { ALLOWANCE_LEASE_MS, type AllowanceStore, type ReportRequest } from '../allowances/allowance-store';
import { type ReportedCall, writeCalls } from '../allowances/reported-calls';
import type { Payer } from '../ledger';
import type { Closing, KeptReport, Opening, SpoolFile } from './spool-file';

/** A spool file, and whether the process that wrote it has stopped. */
export interface KnownFile {
  readonly file: SpoolFile;
  readonly isLeft: boolean;
}

/** All lines of spool files about one allowance (money held in advance), and the file to which `takeOver` appends further reports. */
interface LeftAllowance extends Payer {
  readonly generation: string;
  readonly file: SpoolFile;
  readonly openings: Map<string, Opening>;
  readonly closings: Map<string, Closing>;
  readonly reports: KeptReport[];
}

/**
 * Reads the lines of spool files about allowances (money held in advance). It skips open calls of processes that still run. It also skips
 * calls that Postgres has, because the line of their report may have been deleted with its file.
 */
export async function readAllowances(
  files: readonly KnownFile[],
  generations: ReadonlySet<string>,
): Promise<readonly LeftAllowance[]> {
  const found = new Map<string, LeftAllowance>();
  const callsOf = new Map<string, LeftAllowance>();
  const readingOf = ({ accountId, keyId, generation }: Opening | KeptReport, file: SpoolFile): LeftAllowance => {
    const empty = () => ({ openings: new Map(), closings: new Map(), reports: [] });
    return getOrInsert(found, generation, () => ({ accountId, keyId, generation, file, ...empty() }));
  };
  const closings: Closing[] = [];
  const running = new Set<string>();
  for (const { file, isLeft } of files) {
    for (const line of await file.lines()) {
      if (line.kind === 'settle' || line.kind === 'release') {
        closings.push(line);
      } else if (generations.has(line.generation)) {
        const reading = readingOf(line, file);
        if (line.kind === 'report') {
          reading.reports.push(line);
        } else if (file.waiting.has(line.rid)) {
          reading.openings.set(line.rid, line);
          callsOf.set(line.rid, reading);
          if (!isLeft) running.add(line.rid);
        }
      }
    }
  }
  for (const closing of closings) {
    callsOf.get(closing.rid)?.closings.set(closing.rid, closing);
    running.delete(closing.rid);
  }
  for (const rid of running) callsOf.get(rid)?.openings.delete(rid);
  for (const { reports } of found.values()) reports.sort((one, other) => one.sequence - other.sequence);
  return [...found.values()];
}

/** `reported`: the ledger's outbox or Postgres has all ended calls. `lost`: the ledger lacks the allowance or one of its reports. `not_ready`: retry. */
type TakenOver = 'reported' | 'lost' | 'not_ready';

/**
 * Reports to the ledger the calls of an allowance that a stopped process has not reported. It repeats that process's last report unchanged,
 * then reports the other calls. Open calls cost nothing, and their records are made from the facts that the process kept. A report is
 * written to disk before it is sent, so that a process that takes over from this one can repeat it.
 */
export async function takeOver(left: LeftAllowance, store: AllowanceStore): Promise<TakenOver> {
  const { accountId, generation, reports } = left;
  const known = await store.lastReport(accountId, generation);
  const last = reports.at(-1);
  if (known === undefined || (last?.sequence ?? 0) > known.sequence + 1) return 'lost';
  const isPending = last !== undefined && last.sequence > known.sequence;
  // A late report of the stopped process may have the same sequence number as a report of this process. The digest shows which report the ledger has.
  const reported = reports.filter(({ sequence, digest }) => sequence !== known.sequence || digest === known.digest);
  const knownRids = new Set(reported.flatMap(({ rids }) => rids));
  const rest = [...left.openings.keys()].filter((rid) => !knownRids.has(rid)).map((rid) => endOf(left, rid));
  if (isPending) {
    const restHoldE8 = rest.reduce((sum, { rid }) => sum + (left.openings.get(rid)?.amountE8 ?? 0n), 0n);
    const { outcome } = await store.report(reportOf(left, last, restHoldE8));
    if (outcome !== 'reported') return outcome === 'unknown_generation' ? 'lost' : 'not_ready';
  }
  if (rest.length === 0) return 'reported';
  const report: KeptReport = {
    kind: 'report',
    accountId,
    keyId: left.keyId,
    rid: newId(),
    generation,
    sequence: (isPending ? last.sequence : known.sequence) + 1,
    digest: digestOf(rest),
    rids: rest.map(({ rid }) => rid),
  };
  left.file.append(report);
  left.file.flush();
  const { outcome } = await store.report(reportOf(left, report, 0n));
  if (outcome === 'reported') return 'reported';
  return outcome === 'unknown_generation' ? 'lost' : 'not_ready';
}

function endOf({ openings, closings }: LeftAllowance, rid: string): ReportedCall {
  const closing = closings.get(rid);
  if (closing === undefined)
    return { rid, ending: 'expired', costE8: 0n, shortfallE8: 0n, record: openings.get(rid)?.facts ?? '' };
  const { kind, costE8, record } = closing;
  return { rid, ending: kind === 'settle' ? 'settled' : 'released', costE8, shortfallE8: 0n, record };
}

function reportOf(left: LeftAllowance, report: KeptReport, openE8: bigint): ReportRequest {
  const { accountId, keyId, rid, generation, sequence, digest } = report;
  const calls = report.rids.map((each) => endOf(left, each));
  return {
    accountId,
    keyId,
    generation,
    sequence,
    rid,
    digest,
    keyRev: 0,
    calls: writeCalls(calls),
    costE8: calls.reduce((sum, { costE8 }) => sum + costE8, 0n),
    shortfallE8: 0n,
    openE8,
    giveE8: 0n,
    wantE8: 0n,
    besideE8: 0n,
    admits: false,
    isPatient: false,
    isSettling: false,
    leaseMs: ALLOWANCE_LEASE_MS,
  };
}
