import type { KeyRates } from '../../core/accounts/rates';

/** The usual limits, but as many requests as a test likes. */
export const KEY_RATES: KeyRates = { madePerDay: 200, madePerHour: 60, requestsPerMinute: 1_000_000 };
