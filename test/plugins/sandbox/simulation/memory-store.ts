import type { ClosedEntry } from '../../../../core/ledger/ledger';
import { type Aggregate, applyChange, type Change } from '../../../../plugins/sandbox/lifecycle/aggregate';
import type { BillLine, Operation, Period, SandboxEvent, Segment } from '../../../../plugins/sandbox/lifecycle/sandbox';
import { isFinal } from '../../../../plugins/sandbox/lifecycle/states';
import type { Claim, PeriodCharge, SandboxStore } from '../../../../plugins/sandbox/store/sandbox-store';

/** Keeps one sandbox's records in memory, with all rows that were ever written and the rules of the tables. */
export class MemoryStore implements SandboxStore {
  readonly operations = new Map<string, Operation>();
  readonly segments = new Map<string, Segment>();
  readonly periods = new Map<string, Period>();
  readonly lines = new Map<string, BillLine>();
  readonly events: SandboxEvent[] = [];
  /** The entries of the ledger that are written to the database. */
  readonly shipped: ClosedEntry[] = [];
  #leaseUntilMs = 0;

  constructor(public aggregate: Aggregate) {
    this.#write(aggregate.period === undefined ? { set: {} } : { set: {}, periods: [aggregate.period] });
    if (aggregate.operation !== undefined) this.operations.set(aggregate.operation.id, aggregate.operation);
  }

  get leaseUntilMs(): number {
    return this.#leaseUntilMs;
  }

  async load(): Promise<Aggregate> {
    return this.aggregate;
  }

  async commit(before: Aggregate, change: Change, nowMs: number): Promise<Aggregate | undefined> {
    const { revision, leaseEpoch } = this.aggregate.sandbox;
    if (before.sandbox.revision !== revision || before.sandbox.leaseEpoch !== leaseEpoch) return undefined;
    const { after, event } = applyChange(before, change, nowMs);
    this.#write(change);
    if (event !== undefined) this.events.push(event);
    this.aggregate = after;
    return after;
  }

  async claim(nowMs: number, leaseMs: number): Promise<readonly Claim[]> {
    const { sandbox } = this.aggregate;
    if (isFinal(sandbox.observedState) || sandbox.nextAtMs > nowMs || this.#leaseUntilMs > nowMs) return [];
    this.#leaseUntilMs = nowMs + leaseMs;
    const leaseEpoch = sandbox.leaseEpoch + 1;
    this.aggregate = { ...this.aggregate, sandbox: { ...sandbox, leaseEpoch } };
    return [{ id: sandbox.id, epoch: leaseEpoch }];
  }

  async keep(): Promise<boolean> {
    return true;
  }

  async release({ epoch }: Claim, revision: number | undefined, nextAtMs: number): Promise<void> {
    const { sandbox } = this.aggregate;
    if (sandbox.leaseEpoch !== epoch) return;
    this.#leaseUntilMs = 0;
    if (revision !== undefined && revision !== sandbox.revision) return;
    this.aggregate = { ...this.aggregate, sandbox: { ...sandbox, nextAtMs } };
  }

  async chargeOf({ holdId }: Period): Promise<PeriodCharge | undefined> {
    const entry = this.shipped.find(({ rid, kind }) => rid === holdId && kind === 'charge');
    return entry && { chargedE8: -entry.amountE8, shortfallE8: entry.shortfallE8 };
  }

  #write({ operations = [], segments = [], periods = [], lines = [], dropPeriods = [], dropLines = [] }: Change): void {
    for (const row of operations) this.operations.set(row.id, row);
    for (const { periodId, segmentId } of dropLines) this.lines.delete(`${periodId} ${segmentId}`);
    for (const id of dropPeriods) this.periods.delete(id);
    for (const row of segments) this.segments.set(row.id, row);
    for (const row of periods) this.periods.set(row.id, row);
    for (const row of lines) this.lines.set(`${row.periodId} ${row.segmentId}`, row);
    const open = (rows: Iterable<{ endsAtMs: number | null }>) =>
      [...rows].filter((row) => row.endsAtMs === null).length;
    if (open(this.segments.values()) > 1) throw new Error('two segments are open');
    if ([...this.periods.values()].filter(({ status }) => status === 'OPEN').length > 1) {
      throw new Error('two periods are open');
    }
  }
}
