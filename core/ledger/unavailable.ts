import { fail, type GatewayError } from '../errors';
import { LedgerUnavailable } from './ledger';

/** What a caller is told while the ledger cannot be asked, or is still being filled. */
export function ledgerUnavailable(cause?: unknown): GatewayError {
  return fail('LEDGER_UNAVAILABLE', { retryAfterSeconds: 1, cause });
}

/** Asks the ledger something; @throws GatewayError LEDGER_UNAVAILABLE in place of `LedgerUnavailable`. */
export async function askLedger<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw error instanceof LedgerUnavailable ? ledgerUnavailable(error) : error;
  }
}
