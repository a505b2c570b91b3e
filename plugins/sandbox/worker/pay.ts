import { LedgerUnavailable, type Payer } from '../../../core/ledger/ledger';
import type { Aggregate } from '../lifecycle/aggregate';
import { unrollPeriod } from '../lifecycle/billing';
import { settlePeriod } from '../lifecycle/lifecycle';
import type { Action, Seen } from '../lifecycle/plan';
import type { Period, Sandbox } from '../lifecycle/sandbox';
import type { PeriodCharge } from '../store/sandbox-store';
import { type StepContext, type StepResult, stepAfter } from './step-context';

function payerOf({ accountId, keyId }: Period): Payer {
  return { accountId, keyId };
}

/** Returns the ledger's answer; undefined if the ledger is unavailable or not ready. */
async function answerOf<T extends { readonly outcome: string }>(
  question: Promise<T>,
): Promise<Exclude<T, { outcome: 'not_ready' }> | undefined> {
  try {
    const answer = await question;
    return answer.outcome === 'not_ready' ? undefined : (answer as Exclude<T, { outcome: 'not_ready' }>);
  } catch (error) {
    if (error instanceof LedgerUnavailable) return undefined;
    throw error;
  }
}

/** Enlarges the hold (the money reserved for a sandbox), then extends the time that the hold pays. */
export async function renew(
  context: StepContext,
  aggregate: Aggregate,
  { period, reservedE8, coversUntilMs }: Extract<Action, { kind: 'renew' }>,
  seen: Seen,
): Promise<StepResult | undefined> {
  const amountE8 = reservedE8 > period.reservedE8 ? reservedE8 : period.reservedE8;
  const request = { ...payerOf(period), rid: period.holdId, lifetimeMs: undefined, amountE8 };
  const answer = await answerOf(context.ledger.renew(request));
  if (answer === undefined) return { aggregate, seen: { ...seen, moneyWaits: 'ledger' } };
  if (answer.outcome === 'not_open')
    return {
      aggregate,
      seen: (await reserveAgain(context, aggregate.sandbox, { ...period, reservedE8: amountE8 }))
        ? seen
        : { ...seen, refused: true },
    };
  if (answer.outcome !== 'renewed') return { aggregate, seen: { ...seen, refused: true } };
  // The ledger enlarges the hold first. If the supplier's deadline cannot be moved then, the paid time is not extended.
  const isLonger = await prolong(context, aggregate.sandbox, coversUntilMs);
  const cover = isLonger ? { coversUntilMs } : {};
  const written = await context.commit(aggregate, {
    set: isLonger ? { reservedUntilMs: coversUntilMs } : {},
    periods: [{ ...period, reservedE8: amountE8, ...cover }],
  });
  return stepAfter(written, isLonger ? seen : { ...seen, moneyWaits: 'supplier' });
}

/** Moves the supplier's deadline. Returns false if the supplier may end the instance before `coversUntilMs`. */
async function prolong(context: StepContext, sandbox: Sandbox, coversUntilMs: number): Promise<boolean> {
  if (sandbox.supplierRef === null) return true;
  try {
    if ((await context.places.reachOf(sandbox)) !== 'here') return false;
    const driver = context.driverOf(sandbox);
    if (driver.capabilities.ttl === 'none') return true;
    await driver.setDeadline(sandbox.supplierRef, new Date(coversUntilMs + context.timings.endingReserveMs));
    return true;
  } catch {
    return false;
  }
}

/** Takes a hold again if the ledger lost it and recovery did not restore it. Returns whether the ledger accepted it. */
async function reserveAgain({ ledger }: StepContext, { tags }: Sandbox, period: Period): Promise<boolean> {
  const { holdId: rid, reservedE8: amountE8 } = period;
  const request = { ...payerOf(period), rid, keyRev: Number.MAX_SAFE_INTEGER, amountE8, tags: tags ?? undefined };
  const answer = await answerOf(ledger.reserve({ ...request, lifetimeMs: undefined }));
  return answer?.outcome === 'reserved';
}

/** Charges the cost of a period (the time that one hold pays). If a next period follows, the ledger takes its hold in the same step. */
export async function settle(
  context: StepContext,
  aggregate: Aggregate,
  period: Period,
  seen: Seen,
): Promise<StepResult | undefined> {
  const due = period.dueE8 ?? 0n;
  const next = nextOf(aggregate, period);
  const outcome =
    next === undefined ? await charge(context, period, due) : await roll(context, aggregate.sandbox, period, next);
  if (outcome === 'silent') return { aggregate, seen: { ...seen, moneyWaits: 'ledger' } };
  if (outcome !== 'refused') {
    const change = settlePeriod(aggregate, outcome, context.now());
    if (next?.status !== 'OPEN' || (await prolong(context, aggregate.sandbox, next.coversUntilMs)))
      return stepAfter(await context.commit(aggregate, change), seen);
    // The ledger took the next hold, but the supplier's deadline was not moved. This counts as a failed renewal.
    const { coversUntilMs } = period;
    const periods = [...(change.periods ?? []), { ...next, coversUntilMs }];
    const set = { ...change.set, reservedUntilMs: coversUntilMs };
    return stepAfter(await context.commit(aggregate, { ...change, set, periods }), { ...seen, moneyWaits: 'supplier' });
  }
  if (next?.status === 'OPEN')
    return stepAfter(await context.commit(aggregate, unrollPeriod(aggregate)), { ...seen, refused: true });
  const alone = await charge(context, period, due);
  if (alone === 'silent') return { aggregate, seen: { ...seen, moneyWaits: 'ledger' } };
  return stepAfter(await context.commit(aggregate, settlePeriod(aggregate, alone, context.now())), seen);
}

function nextOf({ settling, period }: Aggregate, { sequence }: Period): Period | undefined {
  return [...settling, ...(period === undefined ? [] : [period])].find((each) => each.sequence === sequence + 1);
}

async function charge(context: StepContext, period: Period, costE8: bigint): Promise<PeriodCharge | 'silent'> {
  const request = { ...payerOf(period), rid: period.holdId, record: '' };
  if (costE8 === 0n) {
    const released = await answerOf(context.ledger.release(request));
    return released === undefined ? 'silent' : { chargedE8: 0n, shortfallE8: 0n };
  }
  const answer = await answerOf(context.ledger.settle({ ...request, costE8 }));
  if (answer === undefined) return 'silent';
  if (answer.outcome === 'settled') return answer;
  if (answer.outcome !== 'unknown_reservation') return { chargedE8: 0n, shortfallE8: costE8 };
  // The ledger has no reservation for this charge. Either the charge is so old that the ledger deleted it, or the ledger lost the hold.
  const before = await context.chargeOf(period);
  if (before !== undefined) return before;
  const late = await answerOf(context.ledger.settle({ ...request, costE8, isLate: true }));
  if (late === undefined) return 'silent';
  return late.outcome === 'settled' ? late : { chargedE8: 0n, shortfallE8: costE8 };
}

async function roll(
  context: StepContext,
  sandbox: Sandbox,
  period: Period,
  next: Period,
): Promise<PeriodCharge | 'silent' | 'refused'> {
  const request = { ...payerOf(period), rid: period.holdId, record: '', costE8: period.dueE8 ?? 0n };
  const answer = await answerOf(
    context.ledger.roll({ ...request, next: { rid: next.holdId, amountE8: next.reservedE8 } }),
  );
  if (answer === undefined) return 'silent';
  if (answer.outcome === 'rolled' || answer.outcome === 'settled') return answer;
  if (answer.outcome !== 'unknown_reservation') return 'refused';
  const before = await context.chargeOf(period);
  if (before !== undefined) return before;
  return (await reserveAgain(context, sandbox, period)) ? roll(context, sandbox, period, next) : 'refused';
}
