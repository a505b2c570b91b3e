import type { Aggregate } from '../life/aggregate';
import type { Action, Seen } from '../life/plan';
import { askSupplier } from './ask-supplier';
import { renew, settle } from './pay';
import { type Step, stepAfter, type World } from './world';

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
