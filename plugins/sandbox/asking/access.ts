import { type ErrorCode, fail, GatewayError } from '../../../core/errors';
import { findSandbox } from '../books/store';
import type { Sandbox } from '../life/sandbox';
import { isFinal } from '../life/states';
import type { SandboxService } from '../service';
import type { InstanceReference, SupplierDriver } from '../suppliers/supplier';
import { ask } from './requests';

export interface RunningSandbox {
  readonly sandbox: Sandbox;
  readonly driver: SupplierDriver;
  readonly reference: InstanceReference;
}

/** What everything inside a running sandbox can be refused with: by `openRunning`, or by the supplier. */
export const RUNNING_ERRORS: readonly ErrorCode[] = [
  'SANDBOX_NOT_FOUND',
  'SANDBOX_NOT_RUNNING',
  'SANDBOX_FINAL',
  'SANDBOX_ELSEWHERE',
  'NOT_SUPPORTED',
  'INSUFFICIENT_BALANCE',
  'KEY_LIMIT_EXCEEDED',
  'FORBIDDEN',
  'RATE_LIMITED',
  'SUPPLIER_UNAVAILABLE',
  'SUPPLIER_ERROR',
  'SUPPLIER_TIMEOUT',
];

/**
 * The account's own sandbox, unless it has ended or another node has it. Asked before a body is read, which is not worth reading
 * otherwise; the sandbox is not resumed for it. @throws SANDBOX_NOT_FOUND, SANDBOX_FINAL, SANDBOX_ELSEWHERE
 */
export async function findUnfinished(
  { database, places }: SandboxService,
  accountId: string,
  id: string,
): Promise<Sandbox> {
  const sandbox = await findSandbox(database, accountId, id);
  if (isFinal(sandbox.observedState)) throw fail('SANDBOX_FINAL');
  if (!places.isHere(sandbox)) throw fail('SANDBOX_ELSEWHERE', { retryAfterSeconds: 1 });
  return sandbox;
}

const RESUMED_WITHIN_MS = 60_000;
/** News may be lost: it is looked for this often all the same. */
const LOOK_EVERY_MS = 1_000;

/**
 * What commands, files and ports begin with: the account's sandbox, while it runs. One that is suspended and may be resumed on
 * access is resumed first.
 * @throws SANDBOX_NOT_FOUND, SANDBOX_NOT_RUNNING, SANDBOX_FINAL, SANDBOX_ELSEWHERE, SUPPLIER_UNAVAILABLE; for a resumption
 * INSUFFICIENT_BALANCE and what else `ask` throws
 */
export async function openRunning(service: SandboxService, accountId: string, id: string): Promise<RunningSandbox> {
  const deadlineMs = performance.now() + RESUMED_WITHIN_MS;
  let isAsked = false;
  for (;;) {
    const sandbox = await findUnfinished(service, accountId, id);
    const { observedState, desiredState, supplierRef: reference } = sandbox;
    if (observedState === 'RUNNING' && desiredState === null && reference !== null) {
      return { sandbox, driver: service.driverOf(sandbox.supplier), reference };
    }
    const isStill = observedState === 'SUSPENDED' && desiredState === null;
    // Asked for and still suspended: the supplier has refused.
    if (!isResumable(sandbox) || (isStill && isAsked) || performance.now() > deadlineMs) {
      throw fail('SANDBOX_NOT_RUNNING', { details: { observedState } });
    }
    const news = service.changes.next(id, LOOK_EVERY_MS);
    if (isStill) isAsked = await resume(service, accountId, id);
    await news;
  }
}

/** Also while it is just being suspended: then it is resumed once that is done. */
function isResumable({ policy, observedState, desiredState }: Sandbox): boolean {
  if (!policy.resumeOnAccess || desiredState === 'TERMINATED') return false;
  return observedState === 'SUSPENDED' || (observedState === 'RUNNING' && desiredState === 'SUSPENDED');
}

/** False when somebody else was faster, with this or with another state. */
async function resume(service: SandboxService, accountId: string, id: string): Promise<boolean> {
  try {
    await ask(service, { accountId }, id, { verb: 'RESUME', cause: 'access' });
    return true;
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'STATE_CHANGE_IN_PROGRESS') return false;
    throw error;
  }
}
