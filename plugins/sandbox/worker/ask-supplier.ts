import type { Observation, SupplierVerb } from '../lifecycle/plan';
import type { Sandbox } from '../lifecycle/sandbox';
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
} from '../suppliers/supplier';
import { instanceName } from '../suppliers/tags';
import type { StepContext, SupplierCall } from './step-context';

/** Sends one call to the supplier, then inspects the instance. The instance's state counts, not the answer. Returns any outcome as an observation. */
export async function askSupplier(context: StepContext, sandbox: Sandbox, verb: SupplierVerb): Promise<Observation> {
  const reach = await context.places.reachOf(sandbox);
  if (reach !== 'here') return observeAway(reach, verb);
  const startedAtMs = context.now();
  const note = (outcome: SupplierCall['outcome'], message: string | null) => {
    const call = { sandboxId: sandbox.id, supplier: sandbox.supplier, verb, outcome, message };
    context.noteCall({ ...call, startedAtMs, endedAtMs: context.now() });
  };
  try {
    const reference = await send(context, sandbox, verb);
    note('OK', null);
    const inspection = await context.driverOf(sandbox).inspect(reference);
    const isEnding = sandbox.desiredState === 'TERMINATED' || sandbox.finalState !== null;
    const isLost = inspection.kind === 'gone' && sandbox.goneSinceMs !== null && !isEnding;
    if (isLost && (await context.areTooManyGone(sandbox.supplier)))
      return { seen: 'silence', verb, message: 'Too many instances of this supplier are missing at once.' };
    return { seen: 'instance', inspection, asked: verb !== 'inspect' };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (error instanceof InstanceGone) {
      note('REJECTED', message);
      return { seen: 'instance', inspection: { kind: 'gone' }, asked: false };
    }
    if (error instanceof Rejected || error instanceof NotSupported || error instanceof NotRunning) {
      note('REJECTED', message);
      const isTemporary = error instanceof NotRunning || (error instanceof Rejected && error.isTemporary);
      return { seen: 'refusal', verb, message, isTemporary, isRejected: error instanceof Rejected };
    }
    if (error instanceof RateLimited) {
      note('NOT_SENT', message);
      return { seen: 'refusal', verb, message, isTemporary: true, isRejected: false };
    }
    // AMBIGUOUS includes faults of the driver, because it is then unknown what the supplier did.
    note(error instanceof NotSent ? 'NOT_SENT' : 'AMBIGUOUS', message);
    return { seen: 'silence', verb, message };
  }
}

/** Returns the worker's observation if this node cannot reach the instance; sends nothing. If the instance's node is lost, the instance counts as gone. */
function observeAway(reach: 'silent' | 'lost', verb: SupplierVerb): Observation {
  if (reach === 'silent') return { seen: 'silence', verb, message: 'The node that runs the sandbox is unreachable.' };
  if (verb !== 'create') return { seen: 'instance', inspection: { kind: 'gone' }, asked: false };
  const message = 'The node that was creating the sandbox is permanently lost.';
  return { seen: 'refusal', verb, message, isTemporary: false, isRejected: true };
}

async function send(context: StepContext, sandbox: Sandbox, verb: SupplierVerb): Promise<InstanceReference> {
  const driver = context.driverOf(sandbox);
  if (verb === 'create') return createOrAdopt(context, driver, sandbox);
  const reference = sandbox.supplierRef;
  if (reference === null) throw new Error(`${verb} is impossible: the sandbox has no instance at its supplier`);
  if (verb !== 'inspect') await driver[verb](reference);
  return reference;
}

async function createOrAdopt(
  context: StepContext,
  driver: SupplierDriver,
  sandbox: Sandbox,
): Promise<InstanceReference> {
  const { holdAheadMs, endingReserveMs } = context.timings;
  try {
    return await driver.create(sandbox.spec, {
      name: instanceName(sandbox.id),
      tags: context.tagsOf(sandbox),
      birthTtlSeconds: (holdAheadMs + endingReserveMs) / 1_000,
    });
  } catch (error) {
    if (error instanceof AlreadyExists) return error.reference;
    throw error;
  }
}
