import { fail, type GatewayError } from '../../../core/errors';
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

/** Converts a supplier's error inside a running sandbox into the error that the caller gets. */
export function toCallerError(error: unknown): unknown {
  if (error instanceof FileFailure) return fileFailure(error);
  if (error instanceof NotRunning || error instanceof InstanceGone)
    return fail('SANDBOX_NOT_RUNNING', { cause: error });
  if (error instanceof NotSupported) return fail('NOT_SUPPORTED', { cause: error });
  if (error instanceof PortClosed) {
    return fail('SUPPLIER_ERROR', {
      message: 'No program in the sandbox listens on this port. Start one first.',
      cause: error,
    });
  }
  if (error instanceof RateLimited) {
    return fail('RATE_LIMITED', { retryAfterSeconds: error.retryAfterSeconds, cause: error });
  }
  if (error instanceof TimedOut) return fail('SUPPLIER_TIMEOUT', { cause: error });
  if (error instanceof SupplierError) return fail('SUPPLIER_ERROR', { cause: error });
  return error;
}

function fileFailure(error: FileFailure): GatewayError {
  if (error.reason === 'not-found') return fail('FILE_NOT_FOUND', { param: 'path', cause: error });
  if (error.reason === 'no-space') {
    return fail('FILE_TOO_LARGE', {
      message: 'No space is left on the disk of the sandbox. Remove files first.',
      cause: error,
    });
  }
  return fail('PATH_INVALID', { param: 'path', message: error.message, cause: error });
}
