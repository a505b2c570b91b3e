import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { Counter } from 'prom-client';
import { metrics } from '../../base/metrics';
import { formatUsd } from '../../base/money';
import { LedgerUnavailable } from '../ledger';
import type { KeptReport, Opening } from '../spool/spool-file';
import { type Allowance, rightNow } from './allowance';
import { type AllowanceStore, RECALL_WAIT_MS, type ReportOutcome, type ReportRequest } from './allowance-store';

/** Keeps the calls and reports of an allowance (money held in advance) on disk; see `Spool`. */
export interface AllowanceSpool {
  /** Resolves when the line is on disk. A report is sent only after that. */
  keep(line: Opening | KeptReport): Promise<void>;
}

interface ReporterOptions {
  readonly store: AllowanceStore;
  readonly log: Logger;
  readonly spool: AllowanceSpool | undefined;
  /** Returns the next report of an allowance. The report requests more money if the key is busy. */
  next(allowance: Allowance): ReportRequest;
  /** Notifies the shipper (the thread that moves outbox entries to Postgres) that the outbox of this account has a new entry. */
  nudge(accountId: string): void;
  lost(allowance: Allowance): void;
}

const FIRST_PAUSE_MS = 20;
const MAX_PAUSE_MS = 1_000;
const RECALL_PAUSE_MS = 5;

const reports = new Counter({
  name: 'tollgate_ledger_reports_total',
  help: 'Reports of allowances, by the answer of the ledger.',
  labelNames: ['outcome'],
  registers: [metrics],
});
const reported = new Counter({
  name: 'tollgate_ledger_reported_calls_total',
  help: 'Calls that were reserved and settled in memory and reported to the ledger.',
  registers: [metrics],
});
const uncovered = new Counter({
  name: 'tollgate_ledger_uncovered_usd_total',
  help: 'Amount in USD that open calls had to hold without available money, because their lease had ended or their holds grew.',
  registers: [metrics],
});

/** Sends the reports of allowances to the ledger: one report of an allowance at a time, each repeated until the ledger answers it. */
export class Reporter {
  readonly #options: ReporterOptions;
  readonly #underWay = new Map<Allowance, Promise<ReportOutcome>>();
  readonly #waiting = new Map<Allowance, Promise<ReportOutcome>>();
  #isStopped = false;

  constructor(options: ReporterOptions) {
    this.#options = options;
  }

  /** Reports everything that happened until now. A report that is already being sent may lack the latest changes, so all callers share the next one. */
  report(allowance: Allowance): Promise<ReportOutcome> {
    const before = this.#underWay.get(allowance);
    if (before === undefined) return this.#begin(allowance);
    const waiting = this.#waiting.get(allowance) ?? before.then(() => this.#begin(allowance));
    this.#waiting.set(allowance, waiting);
    return waiting;
  }

  underWay(allowance: Allowance): Promise<ReportOutcome> | undefined {
    return this.#underWay.get(allowance);
  }

  /** Stops repeating reports. Unanswered reports stay on disk. */
  stop(): void {
    this.#isStopped = true;
  }

  #begin(allowance: Allowance): Promise<ReportOutcome> {
    this.#waiting.delete(allowance);
    const sent = this.#send(allowance).finally(() => {
      if (this.#underWay.get(allowance) === sent) this.#underWay.delete(allowance);
    });
    this.#underWay.set(allowance, sent);
    return sent;
  }

  async #send(allowance: Allowance): Promise<ReportOutcome> {
    const { next, spool, nudge, lost, log } = this.#options;
    if (allowance.isLost) return { outcome: 'unknown_generation' };
    const rids = allowance.ended.map(({ rid }) => rid);
    const report = next(allowance);
    const { accountId, keyId, rid, generation, sequence, digest } = report;
    if (rids.length > 0)
      await spool?.keep({ kind: 'report', accountId, keyId, rid, generation, sequence, digest, rids });
    const sentAt = rightNow();
    const answer = await this.#insist(report);
    reports.inc({ outcome: answer.outcome });
    if (answer.outcome === 'reported') {
      reported.inc(rids.length);
      if (rids.length > 0) nudge(allowance.accountId);
      if (answer.uncoveredE8 > 0n) uncovered.inc(Number(formatUsd(answer.uncoveredE8)));
      allowance.answered(answer, sentAt);
      // If the ledger has recalled the allowance's money meanwhile, the node gives back the free part at once.
      if (report.admits && !answer.mayAdmit) void this.report(allowance);
    } else if (answer.outcome !== 'not_ready') {
      log.warn(
        { generation: allowance.generation, outcome: answer.outcome },
        'the ledger no longer has an allowance of this node; its calls are settled one by one',
      );
      lost(allowance);
    }
    return answer;
  }

  /** Repeats a report unchanged until it is answered, because the ledger may have applied it without answering. */
  async #insist(report: ReportRequest): Promise<ReportOutcome> {
    const { store, log } = this.#options;
    const patientUntil = performance.now() + RECALL_WAIT_MS;
    let pauseMs = FIRST_PAUSE_MS;
    for (;;) {
      const isPatient = performance.now() < patientUntil;
      const answer = await store.report({ ...report, isPatient }).catch((error: unknown) => {
        if (!(error instanceof LedgerUnavailable))
          log.error(
            { reason: String(error) },
            'the ledger failed to apply a report of an allowance; the report is retried',
          );
        return { outcome: 'not_ready' } as const;
      });
      if (answer.outcome !== 'not_ready' && answer.outcome !== 'recalling') return answer;
      if (this.#isStopped) return { outcome: 'not_ready' };
      if (answer.outcome === 'recalling') {
        store.recall(report.accountId);
        await sleep(RECALL_PAUSE_MS);
        continue;
      }
      await sleep(pauseMs);
      pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
    }
  }
}
