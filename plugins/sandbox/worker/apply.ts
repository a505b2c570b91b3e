import type { Aggregate } from '../life/aggregate';
import type { Action, Seen } from '../life/plan';
import { askSupplier } from './ask-supplier';
import { renew, settle } from './pay';
import { type Step, stepAfter, type World } from './world';

/** Does one action. Safe to repeat, also after a crash anywhere in it. Answers undefined when the lease is lost. */
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
  const isStillAsked = intended?.sandbox.desiredState === aggregate.sandbox.desiredState;
  // Somebody changed it meanwhile: it is decided anew.
  if (intended?.sandbox.actionSentAtMs !== actionSentAtMs || !isStillAsked) return stepAfter(intended, seen);
  const observation = await askSupplier(world, intended.sandbox, verb);
  const isRepeated = before !== null && observation.seen === 'instance';
  return {
    aggregate: intended,
    seen: { ...seen, observation: isRepeated ? { ...observation, asked: false } : observation },
  };
}

/** That it is being sent is written first: from then on there may be an instance. */
async function create(world: World, aggregate: Aggregate, seen: Seen): Promise<Step | undefined> {
  const createSentAtMs = world.now();
  const { sandbox } = aggregate;
  // Wherever it was wanted, from the first create on it lives where that is sent.
  const place = sandbox.createSentAtMs === null ? world.places.homeOf(sandbox.supplier) : sandbox.place;
  const intended = await world.commit(aggregate, { set: { createSentAtMs, place } });
  // Somebody changed it meanwhile: it is decided anew.
  if (intended?.sandbox.createSentAtMs !== createSentAtMs) return stepAfter(intended, seen);
  return { aggregate: intended, seen: { ...seen, observation: await askSupplier(world, intended.sandbox, 'create') } };
}
