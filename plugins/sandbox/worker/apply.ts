import type { Aggregate } from '../lifecycle/aggregate';
import type { Action, Seen } from '../lifecycle/plan';
import { askSupplier } from './ask-supplier';
import { renew, settle } from './pay';
import { type StepContext, type StepResult, stepAfter } from './step-context';

/** Runs one action on a sandbox. Repeating it is safe, even after a crash. Returns undefined if this worker has lost its claim on the sandbox. */
export async function apply(
  context: StepContext,
  aggregate: Aggregate,
  action: Action,
  seen: Seen,
): Promise<StepResult | undefined> {
  const { observation: _, ...known } = seen;
  switch (action.kind) {
    case 'record':
      return stepAfter(await context.commit(aggregate, action.change), known);
    case 'settle':
      return settle(context, aggregate, action.period, known);
    case 'renew':
      return renew(context, aggregate, action, known);
    case 'create':
      return create(context, aggregate, known);
    case 'inspect':
      return { aggregate, seen: { ...known, observation: await askSupplier(context, aggregate.sandbox, 'inspect') } };
    default:
      return act(context, aggregate, action.kind, known);
  }
}

/** Sends an action to the supplier. First stores the time of sending, because the answer to a repeated call does not show when the change happened. */
async function act(
  context: StepContext,
  aggregate: Aggregate,
  verb: 'suspend' | 'resume' | 'terminate',
  seen: Seen,
): Promise<StepResult | undefined> {
  const before = aggregate.sandbox.actionSentAtMs;
  const actionSentAtMs = before ?? context.now();
  const intended = await context.commit(aggregate, { set: { actionSentAtMs } });
  const isStillAsked = intended?.sandbox.desiredState === aggregate.sandbox.desiredState;
  // Another process has changed the sandbox meanwhile, so the worker decides anew.
  if (intended?.sandbox.actionSentAtMs !== actionSentAtMs || !isStillAsked) return stepAfter(intended, seen);
  const observation = await askSupplier(context, intended.sandbox, verb);
  const isRepeated = before !== null && observation.seen === 'instance';
  return {
    aggregate: intended,
    seen: { ...seen, observation: isRepeated ? { ...observation, asked: false } : observation },
  };
}

/** Sends a create request to the supplier. First stores the time of sending, because from then on an instance may exist. */
async function create(context: StepContext, aggregate: Aggregate, seen: Seen): Promise<StepResult | undefined> {
  const createSentAtMs = context.now();
  const { sandbox } = aggregate;
  // The first create request chooses the supplier's preferred place (the host that runs the instance). Every repetition goes to the same place.
  const place = sandbox.createSentAtMs === null ? context.places.homeOf(sandbox.supplier) : sandbox.place;
  const intended = await context.commit(aggregate, { set: { createSentAtMs, place } });
  // Another process has changed the sandbox meanwhile, so the worker decides anew.
  if (intended?.sandbox.createSentAtMs !== createSentAtMs) return stepAfter(intended, seen);
  return {
    aggregate: intended,
    seen: { ...seen, observation: await askSupplier(context, intended.sandbox, 'create') },
  };
}
