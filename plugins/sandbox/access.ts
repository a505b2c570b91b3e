import { fail } from '../../core/errors';
import type { InstanceReference, SupplierDriver } from '../../core/supplier';
import { ask } from './requests';
import type { Sandbox } from './sandbox';
import type { SandboxService } from './service';
import { isFinal } from './states';
import { findSandbox } from './store';

export interface RunningSandbox {
  readonly sandbox: Sandbox;
  readonly driver: SupplierDriver;
  readonly reference: InstanceReference;
}

/**
 * What commands, files and ports begin with: the account's sandbox, while it runs. One that is suspended and may be resumed on
 * access is resumed first.
 * @throws SANDBOX_NOT_FOUND, SANDBOX_NOT_RUNNING, SANDBOX_FINAL, SUPPLIER_UNAVAILABLE
 */
export async function openRunning(service: SandboxService, accountId: string, id: string): Promise<RunningSandbox> {
  const found = await findSandbox(service.database, accountId, id);
  const sandbox = mayResume(found) ? await resumed(service, found) : found;
  if (isFinal(sandbox.observedState)) throw fail('SANDBOX_FINAL');
  if (sandbox.observedState !== 'RUNNING' || sandbox.desiredState !== null || sandbox.supplierRef === null) {
    throw fail('SANDBOX_NOT_RUNNING', { details: { observedState: sandbox.observedState } });
  }
  return { sandbox, driver: service.driverOf(sandbox.supplier), reference: sandbox.supplierRef };
}

function mayResume({ policy, observedState, desiredState }: Sandbox): boolean {
  return policy.resumeOnAccess && observedState === 'SUSPENDED' && desiredState !== 'TERMINATED';
}

/** A caller waits this long for it to run. */
const RESUME_WITHIN_MS = 60_000;
/** News may be lost: it is looked for this often all the same. */
const LOOK_EVERY_MS = 1_000;

/** Asks for it once, however many come at the same time. @throws what `ask` does, money's refusals above all */
async function resumed(service: SandboxService, { id, accountId }: Sandbox): Promise<Sandbox> {
  await ask(service, { accountId }, id, { verb: 'RESUME', cause: 'ACCESS' });
  const deadlineMs = Date.now() + RESUME_WITHIN_MS;
  for (;;) {
    const news = service.changes.next(id, LOOK_EVERY_MS);
    const sandbox = await findSandbox(service.database, accountId, id);
    if (sandbox.observedState !== 'SUSPENDED' || sandbox.desiredState !== 'RUNNING') return sandbox;
    if (Date.now() >= deadlineMs) return sandbox;
    await news;
  }
}
