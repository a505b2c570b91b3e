import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '../../../core/errors';
import { beginOperation, finishOperation, type Timed } from '../books/store';
import type { OperationType } from '../life/states';
import { toCallerError } from '../suppliers/failure';
import type { RunningSandbox } from './access';

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
