import { databaseUnavailable, isDatabaseUnavailable } from '../base/database-availability';
import { fail, GatewayError } from '../base/errors';
import { LedgerUnavailable } from '../ledger/ledger';
import { ledgerUnavailable } from '../ledger/unavailable';

/** Returns the error that the client may see. An error that is not meant for clients becomes INTERNAL_ERROR. */
export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof LedgerUnavailable) return ledgerUnavailable(error);
  if (isDatabaseUnavailable(error)) return databaseUnavailable(error);
  return fail('INTERNAL_ERROR', { cause: error });
}
