import { fail, type GatewayError } from '../base/errors';
import { LedgerUnavailable } from './ledger';

/** Returns the error that a client gets while the ledger is unavailable or is being restored from Postgres. */
export function ledgerUnavailable(cause?: unknown): GatewayError {
  return fail('LEDGER_UNAVAILABLE', { retryAfterSeconds: 1, cause });
}

export function accountFrozen(): GatewayError {
  return fail('FORBIDDEN', { message: 'This account is frozen. Ask the operator of the gateway.' });
}

/**
 * Runs an operation of the ledger.
 * @throws GatewayError LEDGER_UNAVAILABLE instead of `LedgerUnavailable`
 */
export async function askLedger<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw error instanceof LedgerUnavailable ? ledgerUnavailable(error) : error;
  }
}
