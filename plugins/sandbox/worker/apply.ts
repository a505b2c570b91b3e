import type { Ledger } from '../../../core/ledger/ledger';
import type { Charge } from '../books/books';
import type { Places } from '../books/places';
import type { Aggregate, Change } from '../life/aggregate';
import type { Action, Seen, SupplierVerb } from '../life/plan';
import type { Period, Sandbox } from '../life/sandbox';
import type { Timings } from '../life/settings';
import type { SupplierDriver, Tags } from '../suppliers/supplier';
import { askSupplier } from './ask-supplier';
import { renew, settle } from './pay';

/** One supplier call and its outcome. */
export interface SupplierCall {
  readonly sandboxId: string;
  readonly supplier: string;
  readonly verb: SupplierVerb;
  readonly outcome: 'OK' | 'REJECTED' | 'NOT_SENT' | 'AMBIGUOUS';
  readonly message: string | null;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
}

/** The dependencies of a step. Tests replace the clock, the supplier and the books. */
export interface World {
  readonly ledger: Pick<Ledger, 'reserve' | 'settle' | 'release' | 'renew' | 'roll'>;
  readonly timings: Timings;
  now(): number;
  driverOf(sandbox: Sandbox): SupplierDriver;
  tagsOf(sandbox: Sandbox): Tags;
  readonly places: Pick<Places, 'homeOf' | 'reachOf'>;
  /** Writes a change. Returns the current aggregate, or undefined if the claim is lost. */
  commit(aggregate: Aggregate, change: Change): Promise<Aggregate | undefined>;
  noteCall(call: SupplierCall): void;
  chargeOf(period: Period): Promise<Charge | undefined>;
  /** Returns true if so many instances of a supplier are missing at once that none is believed to be gone. */
  areTooManyGone(supplier: string): Promise<boolean>;
}

export interface Step {
  readonly aggregate: Aggregate;
  readonly seen: Seen;
}

export function stepAfter(aggregate: Aggregate | undefined, seen: Seen): Step | undefined {
  return aggregate === undefined ? undefined : { aggregate, seen };
}

/** Runs one action. It may be repeated, even after a crash at any point. Returns undefined if the claim is lost. */
export async function apply(world: World, aggregate: Aggregate, action: Action, seen: Seen): Promise<Step | undefined> {
  const { observation: _, ...known } = seen;
  switch (action.kind) {
    case 'record':
      return stepAfter(await world.commit(aggregate, action.change), known);
    case 'settle':
      return settle(world, aggregate, action.period, known);
    case 'renew':
      return renew(world, aggregate, action, known);
    case 'create':
      return create(world, aggregate, known);
    case 'inspect':
      return { aggregate, seen: { ...known, observation: await askSupplier(world, aggregate.sandbox, 'inspect') } };
    default:
      return act(world, aggregate, action.kind, known);
  }
}

/** Sends an action. It first writes that it is sending, because an answer to a repeated call does not show when the change happened. */
async function act(
  world: World,
  aggregate: Aggregate,
  verb: 'suspend' | 'resume' | 'terminate',
  seen: Seen,
): Promise<Step | undefined> {
  const before = aggregate.sandbox.actionSentAtMs;
  const actionSentAtMs = before ?? world.now();
  const intended = await world.commit(aggregate, { set: { actionSentAtMs } });
  const isStillAsked = intended?.sandbox.desiredState === aggregate.sandbox.desiredState;
  // The sandbox has changed meanwhile: decide anew.
  if (intended?.sandbox.actionSentAtMs !== actionSentAtMs || !isStillAsked) return stepAfter(intended, seen);
  const observation = await askSupplier(world, intended.sandbox, verb);
  const isRepeated = before !== null && observation.seen === 'instance';
  return {
    aggregate: intended,
    seen: { ...seen, observation: isRepeated ? { ...observation, asked: false } : observation },
  };
}

/** Sends a create. It first writes that it is sending, because from then on an instance may exist. */
async function create(world: World, aggregate: Aggregate, seen: Seen): Promise<Step | undefined> {
  const createSentAtMs = world.now();
  const { sandbox } = aggregate;
  // The preferred place counts until the first create. From then on, the place that the create is sent to counts.
  const place = sandbox.createSentAtMs === null ? world.places.homeOf(sandbox.supplier) : sandbox.place;
  const intended = await world.commit(aggregate, { set: { createSentAtMs, place } });
  // The sandbox has changed meanwhile: decide anew.
  if (intended?.sandbox.createSentAtMs !== createSentAtMs) return stepAfter(intended, seen);
  return { aggregate: intended, seen: { ...seen, observation: await askSupplier(world, intended.sandbox, 'create') } };
}
