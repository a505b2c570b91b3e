import { strict as assert } from 'node:assert';
import { newId } from '../../../../core/base/ids';
import { CLOSED_MS } from '../../../../core/ledger/ledger';
import { MemoryLedger } from '../../../../core/ledger/memory-ledger';
import { shardOf } from '../../../../core/ledger/shard';
import { type Aggregate, applyChange } from '../../../../plugins/sandbox/lifecycle/aggregate';
import { rollPeriod } from '../../../../plugins/sandbox/lifecycle/billing';
import { endInstance } from '../../../../plugins/sandbox/lifecycle/lifecycle';
import type { Period } from '../../../../plugins/sandbox/lifecycle/sandbox';
import type { PeriodCharge } from '../../../../plugins/sandbox/store/sandbox-store';
import type { SupplierDriver } from '../../../../plugins/sandbox/suppliers/supplier';
import { renew, settle } from '../../../../plugins/sandbox/worker/pay';
import type { StepContext } from '../../../../plugins/sandbox/worker/step-context';
import { accepted, DEFAULT_TIMINGS, EVERYWHERE } from '../simulation/simulate';

const START_MS = Date.UTC(2026, 10, 21);
const HOUR_MS = 3_600_000;
const USD = 100_000_000n;

describe('paying for a sandbox', () => {
  let nowMs: number;
  let ledger: MemoryLedger;
  let written: Map<string, PeriodCharge>;
  let context: StepContext;
  let aggregate: Aggregate;
  let period: Period;
  let deadlines: Date[];
  let prolongs: boolean;

  const commit: StepContext['commit'] = async (before, change) => applyChange(before, change, nowMs).after;
  const balance = async () => (await ledger.readAccount(period.accountId))?.postedE8;

  /** Writes the ledger's entries to the database and lets the ledger forget the reservations. */
  const shipAndForget = async () => {
    const shard = shardOf(period.accountId);
    for (const [, entries] of await ledger.readOutbox([shard], 100)) {
      for (const { rid, kind, amountE8, shortfallE8 } of entries) {
        if (kind === 'charge') written.set(rid, { chargedE8: -amountE8, shortfallE8 });
      }
      await ledger.trimOutbox(shard, entries);
    }
    nowMs += CLOSED_MS + 1;
  };

  beforeEach(async () => {
    nowMs = START_MS;
    written = new Map();
    deadlines = [];
    prolongs = true;
    ledger = new MemoryLedger({ now: () => nowMs });
    await ledger.open();
    const payer = { accountId: newId(), keyId: newId() };
    await ledger.setAccount(payer.accountId, 'active');
    const settings = { rev: 0, name: 'key', allowedModels: undefined };
    await ledger.setKey({ ...payer, hash: 'h', status: 'active', limitE8: undefined, settings });
    await ledger.credit({ accountId: payer.accountId, rid: newId(), amountE8: 10n * USD });
    const simulation = { seed: 1, trouble: 0, usd: 0n, endAfterMs: 0, hourlyUsd: { RUNNING: 3.6 } };
    const made = accepted(simulation, payer, nowMs);
    period = made.period as Period;
    const hold = { ...payer, rid: period.holdId, amountE8: period.reservedE8, lifetimeMs: undefined };
    await ledger.reserve({ ...hold, keyRev: 0 });
    const segment = {
      id: newId(),
      sandboxId: made.sandbox.id,
      sequence: 1,
      state: 'RUNNING' as const,
      hourlyE8: 360_000_000n,
      startsAtMs: nowMs,
      endsAtMs: null,
    };
    const supplierRef = { id: 'i1', name: 'tg-1' };
    const running = { observedState: 'RUNNING', supplierRef, confirmedAtMs: nowMs } as const;
    aggregate = { ...made, segment, sandbox: { ...made.sandbox, ...running } };
    const driver = {
      capabilities: { ttl: 'absolute' },
      setDeadline: async (_: unknown, at: Date) => {
        if (!prolongs) throw new Error('no answer');
        deadlines.push(at);
      },
    } as unknown as SupplierDriver;
    context = {
      ledger,
      timings: DEFAULT_TIMINGS,
      now: () => nowMs,
      driverOf: () => driver,
      places: EVERYWHERE,
      tagsOf: () => ({}),
      commit,
      noteCall: () => {},
      chargeOf: async ({ holdId }) => written.get(holdId),
      areTooManyGone: async () => false,
    };
  });

  const ended = (endedAtMs: number): Aggregate =>
    applyChange(aggregate, endInstance(aggregate, { finalState: 'TERMINATED', endedAtMs }), nowMs).after;
  const settleFirst = async (of: Aggregate) => {
    const [first] = of.settling;
    assert.ok(first !== undefined);
    return (await settle(context, of, first, {}))?.aggregate;
  };

  it('does not repeat a charge whose answer was lost, even if the ledger has forgotten it', async () => {
    const settling = ended(START_MS + 100_000);
    await settleFirst(settling);
    assert.equal(await balance(), 10n * USD - 10_000_000n);
    await shipAndForget();
    const after = await settleFirst(settling);
    assert.equal(after?.sandbox.totalCostE8, 10_000_000n);
    assert.equal(await balance(), 10n * USD - 10_000_000n);
  });

  it('does not repeat the charge of a finished period if the answer to the charge was lost', async () => {
    nowMs = START_MS + 100_000;
    const confirmed = { ...aggregate, sandbox: { ...aggregate.sandbox, confirmedAtMs: nowMs } };
    const rolled = applyChange(confirmed, rollPeriod(confirmed, nowMs, DEFAULT_TIMINGS), nowMs).after;
    await settleFirst(rolled);
    await shipAndForget();
    const after = await settleFirst(rolled);
    assert.equal(after?.sandbox.totalCostE8, 10_000_000n);
    assert.equal(await balance(), 10n * USD - 10_000_000n);
  });

  it("charges a period after its hold was lost, up to the account's available money", async () => {
    const settling = ended(START_MS + 100_000);
    const [first] = settling.settling as [Period];
    const { accountId, keyId } = first;
    await ledger.release({ accountId, keyId, rid: first.holdId, record: '' });
    await shipAndForget();
    const after = await settleFirst(settling);
    assert.equal(after?.sandbox.totalCostE8, 10_000_000n);
  });

  const renewed = (coversUntilMs: number) =>
    renew(context, aggregate, { kind: 'renew', period, reservedE8: period.reservedE8 + 1n, coversUntilMs }, {});

  it('counts the next period as paid only after the supplier has extended the instance, too', async () => {
    const untilMs = START_MS + HOUR_MS;
    prolongs = false;
    const short = await renewed(untilMs);
    assert.equal(short?.seen.moneyWaits, 'supplier');
    assert.equal(short?.aggregate.period?.coversUntilMs, period.coversUntilMs);
    assert.equal(short?.aggregate.period?.reservedE8, period.reservedE8 + 1n);
    prolongs = true;
    const long = await renewed(untilMs);
    assert.equal(long?.aggregate.period?.coversUntilMs, untilMs);
    assert.deepEqual(deadlines, [new Date(untilMs + DEFAULT_TIMINGS.endingReserveMs)]);
  });

  it('extends the instance at the supplier with the next period', async () => {
    nowMs = START_MS + 100_000;
    const confirmed = { ...aggregate, sandbox: { ...aggregate.sandbox, confirmedAtMs: nowMs } };
    const rolled = applyChange(confirmed, rollPeriod(confirmed, nowMs, DEFAULT_TIMINGS), nowMs).after;
    prolongs = false;
    assert.equal((await settleFirst(rolled))?.period?.coversUntilMs, period.coversUntilMs);
    prolongs = true;
    const after = await settleFirst(rolled);
    assert.equal(after?.period?.coversUntilMs, nowMs + DEFAULT_TIMINGS.holdAheadMs);
    assert.equal(deadlines.length, 1);
  });
});
