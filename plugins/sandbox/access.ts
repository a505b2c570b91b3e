import { fail } from '../../core/errors';
import type { InstanceReference, SupplierDriver } from '../../core/supplier';
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
  const sandbox = await findSandbox(service.database, accountId, id);
  if (isFinal(sandbox.observedState)) throw fail('SANDBOX_FINAL');
  if (sandbox.observedState !== 'RUNNING' || sandbox.desiredState !== null || sandbox.supplierRef === null) {
    throw fail('SANDBOX_NOT_RUNNING', { details: { observedState: sandbox.observedState } });
  }
  return { sandbox, driver: service.driverOf(sandbox.supplier), reference: sandbox.supplierRef };
}
