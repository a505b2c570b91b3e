import { type Ledger, LedgerUnavailable, type Payer } from '../../core/ledger/ledger';
import {
  AlreadyExists,
  InstanceGone,
  type InstanceReference,
  NotRunning,
  NotSent,
  NotSupported,
  RateLimited,
  Rejected,
  type SupplierDriver,
  type Tags,
} from '../../core/supplier';
import type { Aggregate, Change } from './aggregate';
import { unrollPeriod } from './billing';
import { settlePeriod } from './lifecycle';
import type { Action, Observation, Seen, SupplierVerb } from './plan';
import type { Period, Sandbox } from './sandbox';
import type { Timings } from './timings';

/** How a call of the supplier ended, for the books. */
export interface SupplierCall {
  readonly sandboxId: string;
  readonly supplier: string;
  readonly verb: SupplierVerb;
  readonly name: string;
  readonly outcome: 'OK' | 'REJECTED' | 'NOT_SENT' | 'AMBIGUOUS';
  readonly message: string | null;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
}

/** What a step needs of the world; tests have their own clock, supplier and books. */
export interface World {
  readonly ledger: Pick<Ledger, 'reserve' | 'settle' | 'release' | 'renew' | 'roll'>;
  readonly timings: Timings;
  now(): number;
  driverOf(sandbox: Sandbox): SupplierDriver;
  tagsOf(sandbox: Sandbox): Tags;
  /** Writes a change; answers what is there then, or undefined when the lease is lost. */
  commit(aggregate: Aggregate, change: Change): Promise<Aggregate | undefined>;
  noteCall(call: SupplierCall): Promise<void>;
}

export interface Step {
  readonly aggregate: Aggregate;
  readonly seen: Seen;
}

/** The same for ever: creating under it again finds what is there. */
export function instanceName(sandboxId: string): string {
  return `tg-${sandboxId}-1`;
}

/** Does one action. Safe to repeat, also after a crash anywhere in it. Answers undefined when the lease is lost. */
export async function apply(world: World, aggregate: Aggregate, action: Action, seen: Seen): Promise<Step | undefined> {
  const { observation: _, ...known } = seen;
  switch (action.kind) {
    case 'record':
      return after(await world.commit(aggregate, action.change), known);
    case 'settle':
      return settle(world, aggregate, action.period, known);
    case 'renew':
      return renew(world, aggregate, action, known);
    case 'create':
      return create(world, aggregate, known);
    case 'inspect':
      return { aggregate, seen: { ...known, observation: await ask(world, aggregate.sandbox, 'inspect') } };
    default:
      return act(world, aggregate, action.kind, known);
  }
}

/** That it is being sent is written first: an answer to a repetition does not say when it happened. */
async function act(
  world: World,
  aggregate: Aggregate,
  verb: 'suspend' | 'resume' | 'terminate',
  seen: Seen,
): Promise<Step | undefined> {
  const before = aggregate.sandbox.actionSentAtMs;
  const actionSentAtMs = before ?? world.now();
  const intended = await world.commit(aggregate, { set: { actionSentAtMs } });
  if (intended?.sandbox.actionSentAtMs !== actionSentAtMs) return after(intended, seen);
  const observation = await ask(world, intended.sandbox, verb);
  const isRepeated = before !== null && observation.seen === 'instance';
  return {
    aggregate: intended,
    seen: { ...seen, observation: isRepeated ? { ...observation, asked: false } : observation },
  };
}

function after(aggregate: Aggregate | undefined, seen: Seen): Step | undefined {
  return aggregate === undefined ? undefined : { aggregate, seen };
}

/** That it is being sent is written first: from then on there may be an instance. */
async function create(world: World, aggregate: Aggregate, seen: Seen): Promise<Step | undefined> {
  const createSentAtMs = world.now();
  const intended = await world.commit(aggregate, { set: { createSentAtMs } });
  // Somebody changed it meanwhile: it is decided anew.
  if (intended?.sandbox.createSentAtMs !== createSentAtMs) return after(intended, seen);
  return { aggregate: intended, seen: { ...seen, observation: await ask(world, intended.sandbox, 'create') } };
}

async function ask(world: World, sandbox: Sandbox, verb: SupplierVerb): Promise<Observation> {
  const startedAtMs = world.now();
  const note = async (outcome: SupplierCall['outcome'], message: string | null) => {
    // A look that was answered is no news.
    if (verb === 'inspect' && outcome === 'OK') return;
    const call = {
      sandboxId: sandbox.id,
      supplier: sandbox.supplier,
      verb,
      name: instanceName(sandbox.id),
      outcome,
      message,
    };
    await world.noteCall({ ...call, startedAtMs, endedAtMs: world.now() });
  };
  try {
    const reference = await send(world, sandbox, verb);
    await note('OK', null);
    const inspection = await world.driverOf(sandbox).inspect(reference);
    return { seen: 'instance', inspection, asked: verb !== 'inspect' };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (error instanceof InstanceGone) {
      await note('REJECTED', message);
      return { seen: 'instance', inspection: { kind: 'gone' }, asked: false };
    }
    if (error instanceof Rejected || error instanceof NotSupported || error instanceof NotRunning) {
      await note('REJECTED', message);
      const isTemporary = error instanceof NotRunning || (error instanceof Rejected && error.isTemporary);
      return { seen: 'refusal', verb, message, isTemporary };
    }
    if (error instanceof RateLimited) {
      await note('NOT_SENT', message);
      return { seen: 'refusal', verb, message, isTemporary: true };
    }
    // Also a fault of the driver: nobody knows then what was done.
    await note(error instanceof NotSent ? 'NOT_SENT' : 'AMBIGUOUS', message);
    return { seen: 'silence', verb, message };
  }
}

async function send(world: World, sandbox: Sandbox, verb: SupplierVerb): Promise<InstanceReference> {
  const driver = world.driverOf(sandbox);
  if (verb === 'create') return createOrAdopt(world, driver, sandbox);
  const reference = sandbox.supplierRef;
  if (reference === null) throw new Error(`${verb} of an instance that is not known`);
  if (verb !== 'inspect') await driver[verb](reference);
  return reference;
}

async function createOrAdopt(world: World, driver: SupplierDriver, sandbox: Sandbox): Promise<InstanceReference> {
  const { holdAheadMs, endingReserveMs } = world.timings;
  try {
    return await driver.create(sandbox.spec, {
      name: instanceName(sandbox.id),
      tags: world.tagsOf(sandbox),
      birthTtlSeconds: (holdAheadMs + endingReserveMs) / 1_000,
    });
  } catch (error) {
    if (error instanceof AlreadyExists) return error.reference;
    throw error;
  }
}

function payerOf({ accountId, keyId }: Period): Payer {
  return { accountId, keyId };
}

/** undefined when the ledger did not answer. */
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

async function renew(
  world: World,
  aggregate: Aggregate,
  { period, reservedE8, coversUntilMs }: Extract<Action, { kind: 'renew' }>,
  seen: Seen,
): Promise<Step | undefined> {
  const amountE8 = reservedE8 > period.reservedE8 ? reservedE8 : period.reservedE8;
  const request = { ...payerOf(period), rid: period.holdId, lifetimeMs: undefined, amountE8 };
  const answer = await answerOf(world.ledger.renew(request));
  if (answer === undefined) return { aggregate, seen: { ...seen, ledgerSilent: true } };
  if (answer.outcome === 'not_open')
    return { aggregate, seen: (await reserveAgain(world, period, amountE8)) ? seen : { ...seen, refused: true } };
  if (answer.outcome !== 'renewed') return { aggregate, seen: { ...seen, refused: true } };
  // Money first, then longer life at the supplier.
  const longer = await world.commit(aggregate, {
    set: { reservedUntilMs: coversUntilMs },
    periods: [{ ...period, reservedE8: amountE8, coversUntilMs }],
  });
  if (longer?.sandbox.supplierRef) await prolong(world, longer.sandbox, coversUntilMs);
  return after(longer, seen);
}

async function prolong(world: World, sandbox: Sandbox, coversUntilMs: number): Promise<void> {
  const driver = world.driverOf(sandbox);
  if (driver.capabilities.ttl === 'none' || sandbox.supplierRef === null) return;
  // One that failed is made good by the next renewal, minutes before the instance would end.
  await driver
    .setDeadline(sandbox.supplierRef, new Date(coversUntilMs + world.timings.endingReserveMs))
    .catch(() => undefined);
}

/** The ledger has lost the hold, which recovery did not know of either: it is taken anew. */
async function reserveAgain({ ledger }: World, period: Period, amountE8: bigint): Promise<boolean> {
  const request = { ...payerOf(period), rid: period.holdId, keyRev: Number.MAX_SAFE_INTEGER, amountE8 };
  const answer = await answerOf(ledger.reserve({ ...request, lifetimeMs: undefined, record: '' }));
  return answer?.outcome === 'reserved';
}

interface Charge {
  readonly chargedE8: bigint;
  readonly shortfallE8: bigint;
}

async function settle(world: World, aggregate: Aggregate, period: Period, seen: Seen): Promise<Step | undefined> {
  const due = period.dueE8 ?? 0n;
  const next = nextOf(aggregate, period);
  const outcome = next === undefined ? await charge(world, period, due) : await roll(world, period, due, next);
  if (outcome === 'silent') return { aggregate, seen: { ...seen, ledgerSilent: true } };
  if (outcome !== 'refused')
    return after(await world.commit(aggregate, settlePeriod(aggregate, outcome, world.now())), seen);
  if (next?.status === 'OPEN')
    return after(await world.commit(aggregate, unrollPeriod(aggregate)), { ...seen, refused: true });
  const alone = await charge(world, period, due);
  if (alone === 'silent') return { aggregate, seen: { ...seen, ledgerSilent: true } };
  return after(await world.commit(aggregate, settlePeriod(aggregate, alone, world.now())), seen);
}

function nextOf({ settling, period }: Aggregate, { sequence }: Period): Period | undefined {
  return [...settling, ...(period === undefined ? [] : [period])].find((each) => each.sequence === sequence + 1);
}

async function charge(world: World, period: Period, costE8: bigint): Promise<Charge | 'silent'> {
  const request = { ...payerOf(period), rid: period.holdId, record: '' };
  if (costE8 === 0n) {
    const released = await answerOf(world.ledger.release(request));
    return released === undefined ? 'silent' : { chargedE8: 0n, shortfallE8: 0n };
  }
  const answer = await answerOf(world.ledger.settle({ ...request, costE8 }));
  if (answer === undefined) return 'silent';
  if (answer.outcome === 'settled') return answer;
  if (answer.outcome === 'unknown_reservation' && (await reserveAgain(world, period, period.reservedE8))) {
    return charge(world, period, costE8);
  }
  return { chargedE8: 0n, shortfallE8: costE8 };
}

async function roll(
  world: World,
  period: Period,
  costE8: bigint,
  next: Period,
): Promise<Charge | 'silent' | 'refused'> {
  const request = { ...payerOf(period), rid: period.holdId, record: '', costE8 };
  const answer = await answerOf(
    world.ledger.roll({ ...request, next: { rid: next.holdId, amountE8: next.reservedE8 } }),
  );
  if (answer === undefined) return 'silent';
  if (answer.outcome === 'rolled' || answer.outcome === 'settled') return answer;
  if (answer.outcome === 'unknown_reservation' && (await reserveAgain(world, period, period.reservedE8))) {
    return roll(world, period, costE8, next);
  }
  return 'refused';
}
