import type { IncomingHttpHeaders } from 'node:http';
import { type ErrorCode, fail, GatewayError } from '../../../core/base/errors';
import type { Sandbox } from '../lifecycle/sandbox';
import { isFinal, type OperationType } from '../lifecycle/states';
import type { Capability } from '../offerings/offering';
import type { SandboxService } from '../service';
import { beginOperation, findSandbox, finishOperation, type Timed } from '../store/queries';
import { toCallerError } from '../suppliers/failure';
import type { InstanceReference, SupplierDriver } from '../suppliers/supplier';
import { ask } from './requests';

export interface RunningSandbox {
  readonly sandbox: Sandbox;
  readonly driver: SupplierDriver;
  readonly reference: InstanceReference;
}

/** The errors of every endpoint that reaches into a running sandbox. `openRunning` or the supplier throws them. */
export const RUNNING_ERRORS: readonly ErrorCode[] = [
  'SANDBOX_NOT_FOUND',
  'SANDBOX_NOT_RUNNING',
  'SANDBOX_FINAL',
  'SANDBOX_ELSEWHERE',
  'NOT_SUPPORTED',
  'INSUFFICIENT_BALANCE',
  'KEY_LIMIT_EXCEEDED',
  'BUDGET_EXCEEDED',
  'FORBIDDEN',
  'RATE_LIMITED',
  'SUPPLIER_UNAVAILABLE',
  'SUPPLIER_ERROR',
  'SUPPLIER_TIMEOUT',
];

/**
 * Returns the account's sandbox if it has not ended, this node reaches it, and its offering has the capability. Endpoints call it before they read a body, because
 * the body of a rejected request need not be read. It never resumes the sandbox.
 * @throws SANDBOX_NOT_FOUND, SANDBOX_FINAL, SANDBOX_ELSEWHERE, NOT_SUPPORTED
 */
export async function findUnfinished(
  { database, places }: SandboxService,
  accountId: string,
  id: string,
  capability?: Capability,
): Promise<Sandbox> {
  const sandbox = await findSandbox(database, accountId, id);
  if (isFinal(sandbox.observedState)) throw fail('SANDBOX_FINAL');
  if (!places.isHere(sandbox)) throw fail('SANDBOX_ELSEWHERE', { retryAfterSeconds: 1 });
  if (capability !== undefined && !sandbox.offering.capabilities[capability]) throw fail('NOT_SUPPORTED');
  return sandbox;
}

const RESUMED_WITHIN_MS = 60_000;
/** How often a waiting request reads the sandbox again, because a change event may be lost. */
const LOOK_EVERY_MS = 1_000;

/**
 * Returns the account's running sandbox for a command, a file or a port. Resumes a suspended one first if its policy allows that.
 * @throws SANDBOX_NOT_FOUND, SANDBOX_NOT_RUNNING, SANDBOX_FINAL, SANDBOX_ELSEWHERE, SUPPLIER_UNAVAILABLE; for a resumption
 * INSUFFICIENT_BALANCE and the other errors of `ask`
 */
export async function openRunning(
  service: SandboxService,
  accountId: string,
  id: string,
  capability?: Capability,
): Promise<RunningSandbox> {
  const deadlineMs = performance.now() + RESUMED_WITHIN_MS;
  let isAsked = false;
  for (;;) {
    const sandbox = await findUnfinished(service, accountId, id, capability);
    const { observedState, desiredState, supplierRef: reference } = sandbox;
    if (observedState === 'RUNNING' && desiredState === null && reference !== null) {
      return { sandbox, driver: service.driverOf(sandbox.supplier), reference };
    }
    const isStill = observedState === 'SUSPENDED' && desiredState === null;
    // If the sandbox is still suspended after this request has asked for a resumption, the supplier refused to resume it.
    if (!isResumable(sandbox) || (isStill && isAsked) || performance.now() > deadlineMs) {
      throw fail('SANDBOX_NOT_RUNNING', { details: { observedState } });
    }
    const change = service.changes.next(id, LOOK_EVERY_MS);
    if (isStill) isAsked = await resume(service, accountId, id);
    await change;
  }
}

/** Tells whether a request for a command, file or port may resume the sandbox. Also true during a suspension, because a resumption can follow it. */
function isResumable({ policy, observedState, desiredState }: Sandbox): boolean {
  if (!policy.resumeOnAccess || desiredState === 'TERMINATED') return false;
  return observedState === 'SUSPENDED' || (observedState === 'RUNNING' && desiredState === 'SUSPENDED');
}

/** Requests a resumption. Returns false if another state change is already in progress. */
async function resume(service: SandboxService, accountId: string, id: string): Promise<boolean> {
  try {
    await ask(service, { accountId }, id, { verb: 'RESUME', cause: 'access' });
    return true;
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'STATE_CHANGE_IN_PROGRESS') return false;
    throw error;
  }
}

/**
 * Runs one operation in a running sandbox and records its outcome. `headers` are those of the request.
 * @throws the error that the caller gets
 */
export async function operate<T>(
  timed: Timed,
  { sandbox }: RunningSandbox,
  { type, headers }: { readonly type: OperationType; readonly headers: IncomingHttpHeaders },
  work: () => Promise<T>,
): Promise<T> {
  const operationId = await beginOperation(timed, sandbox.id, { type, headers });
  try {
    const value = await work();
    await finishOperation(timed, operationId, { status: 'SUCCEEDED' });
    return value;
  } catch (error) {
    const shown = toCallerError(error);
    await finishOperation(timed, operationId, { status: 'FAILED', error: failureOf(shown) });
    throw shown;
  }
}

/** Returns the part of an error that an operation stores. It holds nothing that the caller does not see. */
export function failureOf(error: unknown): { readonly code: string; readonly message: string } {
  if (error instanceof GatewayError) return { code: error.code, message: error.message };
  return { code: 'INTERNAL_ERROR', message: 'An internal error of the gateway. Report the request id if it persists.' };
}
