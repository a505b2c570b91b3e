import { fail, type GatewayError } from '../../../core/base/errors';
import {
  FileFailure,
  InstanceGone,
  NotRunning,
  NotSupported,
  PortClosed,
  RateLimited,
  SupplierError,
  TimedOut,
} from './supplier';

/** Converts a supplier's error about a running sandbox into the error that the client gets. */
export function toCallerError(cause: unknown): unknown {
  if (cause instanceof FileFailure) return fileFailure(cause);
  if (cause instanceof RateLimited) return fail('RATE_LIMITED', { retryAfterSeconds: cause.retryAfterSeconds, cause });
  if (cause instanceof PortClosed) return fail('SUPPLIER_ERROR', { message: NOBODY_LISTENS, cause });
  const [, code] = CODES.find(([kind]) => cause instanceof kind) ?? [];
  return code === undefined ? cause : fail(code, { cause });
}

const NOBODY_LISTENS = 'No program in the sandbox listens on this port. Start one first.';
const NO_SPACE = 'No space is left on the disk of the sandbox. Remove files first.';

/** The error code for each class of supplier errors. The first class that matches decides. */
const CODES = [
  [NotRunning, 'SANDBOX_NOT_RUNNING'],
  [InstanceGone, 'SANDBOX_NOT_RUNNING'],
  [NotSupported, 'NOT_SUPPORTED'],
  [TimedOut, 'SUPPLIER_TIMEOUT'],
  [SupplierError, 'SUPPLIER_ERROR'],
] as const;

function fileFailure(cause: FileFailure): GatewayError {
  if (cause.reason === 'not-found') return fail('FILE_NOT_FOUND', { param: 'path', cause });
  if (cause.reason === 'no-space') return fail('FILE_TOO_LARGE', { message: NO_SPACE, cause });
  return fail('PATH_INVALID', { param: 'path', message: cause.message, cause });
}
