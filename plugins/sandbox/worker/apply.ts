import type { Aggregate } from '../lifecycle/aggregate';
import type { Action, Seen } from '../lifecycle/plan';
import { askSupplier } from './ask-supplier';
import { renew, settle } from './pay';
import { type StepContext, type StepResult, stepAfter } from './step-context';

/** Runs one action. It may be repeated, even after a crash at any point. Returns undefined if the claim is lost. */
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

/** Sends an action. It first writes that it is sending, because an answer to a repeated call does not show when the change happened. */
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
  // The sandbox has changed meanwhile: decide anew.
  if (intended?.sandbox.actionSentAtMs !== actionSentAtMs || !isStillAsked) return stepAfter(intended, seen);
  const observation = await askSupplier(context, intended.sandbox, verb);
  const isRepeated = before !== null && observation.seen === 'instance';
  return {
    aggregate: intended,
    seen: { ...seen, observation: isRepeated ? { ...observation, asked: false } : observation },
  };
}

/** Sends a create. It first writes that it is sending, because from then on an instance may exist. */
async function create(context: StepContext, aggregate: Aggregate, seen: Seen): Promise<StepResult | undefined> {
  const createSentAtMs = context.now();
  const { sandbox } = aggregate;
  // The preferred place counts until the first create. From then on, the place that the create is sent to counts.
  const place = sandbox.createSentAtMs === null ? context.places.homeOf(sandbox.supplier) : sandbox.place;
  const intended = await context.commit(aggregate, { set: { createSentAtMs, place } });
  // The sandbox has changed meanwhile: decide anew.
  if (intended?.sandbox.createSentAtMs !== createSentAtMs) return stepAfter(intended, seen);
  return {
    aggregate: intended,
    seen: { ...seen, observation: await askSupplier(context, intended.sandbox, 'create') },
  };
}
