import { newId } from '../../ids';
import type { Payer } from '../payer';
import type { Closing, KeptReport, Opening } from '../spool/spool-file';
import { digestOf } from './allowance';
import { ALLOWANCE_LEASE_MS, type AllowanceStore, type ReportRequest } from './allowance-store';
import { type ReportedCall, writeCalls } from './reported-calls';

/** What a stopped process left on disk of one allowance. */
export interface LeftAllowance extends Payer {
  readonly generation: string;
  readonly openings: ReadonlyMap<string, Opening>;
  readonly closings: ReadonlyMap<string, Closing>;
  readonly reports: readonly KeptReport[];
}

/** `reported`: all ended calls are in the ledger's outbox or in Postgres. `lost`: the ledger does not know the allowance, or lacks one of its reports. */
export type TakenOver = 'reported' | 'lost' | 'not_ready';

/**
 * Reports to the ledger what a stopped process has not reported: repeats its last report unchanged, then reports the rest. Calls
 * that were open cost nothing, and their records say that they expired. `keep` puts a report on disk before it is sent, so that a
 * process that takes over from this one can repeat it.
 */
export async function takeOver(
  left: LeftAllowance,
  store: AllowanceStore,
  keep: (report: KeptReport) => void,
): Promise<TakenOver> {
  const { accountId, generation, reports } = left;
  const known = await store.lastReport(accountId, generation);
  const last = reports.at(-1);
  if (known === undefined || (last?.sequence ?? 0) > known.sequence + 1) return 'lost';
  const isPending = last !== undefined && last.sequence > known.sequence;
  // A late report of the stopped process may have the sequence number of a report from this process. The digest shows which one the ledger has.
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
  keep(report);
  const { outcome } = await store.report(reportOf(left, report, 0n));
  if (outcome === 'reported') return 'reported';
  return outcome === 'unknown_generation' ? 'lost' : 'not_ready';
}

function endOf({ openings, closings }: LeftAllowance, rid: string): ReportedCall {
  const closing = closings.get(rid);
  if (closing === undefined)
    return { rid, ending: 'expired', costE8: 0n, shortfallE8: 0n, record: openings.get(rid)?.record ?? '' };
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
