import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '../../../core/errors';
import { beginOperation, finishOperation, type Timed } from '../books/store';
import type { OperationType } from '../life/states';
import { toCallerError } from '../suppliers/failure';
import type { RunningSandbox } from './access';

/** Does one thing in a running sandbox and writes down that it was done, or why not. `headers` are those of the request. @throws what the caller is told */
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

/** What an operation keeps of an error: nothing the caller is not told. */
export function failureOf(error: unknown): { readonly code: string; readonly message: string } {
  if (error instanceof GatewayError) return { code: error.code, message: error.message };
  return { code: 'INTERNAL_ERROR', message: 'An internal error of the gateway. Report the request id if it persists.' };
}
