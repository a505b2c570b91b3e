import type { Logger } from 'pino';
import { Counter } from 'prom-client';
import { metrics } from '../metrics';
import { formatUsd } from '../money';
import { type Stores, setAccountStatus } from './accounts';
import { revokeKey } from './keys';

const stops = new Counter({
  name: 'tollgate_excess_stops_total',
  help: 'Keys revoked and accounts frozen because their requests cost more than their holds.',
  labelNames: ['of'],
  registers: [metrics],
});

const STOPPED_AT_ONCE = 100;

/** An account is frozen at this many times what stops a key: a customer may have made new keys. */
const KEYS_OF_AN_ACCOUNT = 10n;

/**
 * Revokes active keys whose requests cost more than `aboveE8` above their holds. Freezes active accounts whose requests did so ten
 * times since the account was last unfrozen.
 */
export async function stopForExcess(stores: Stores, aboveE8: bigint, log: Logger): Promise<void> {
  for (const { id, excess_e8: excessE8 } of await above(stores, 'api_keys', aboveE8)) {
    // Count and log first: if the ledger fails after the database has the change, no later sweep sees the key again.
    stops.inc({ of: 'key' });
    log.warn({ keyId: id, excessUsd: formatUsd(excessE8) }, `the key was revoked ${BECAUSE}`);
    await revokeKey(stores, id, 'excess');
  }
  for (const { id, excess_e8: excessE8 } of await above(stores, 'accounts', aboveE8 * KEYS_OF_AN_ACCOUNT)) {
    stops.inc({ of: 'account' });
    log.warn({ accountId: id, excessUsd: formatUsd(excessE8) }, `the account was frozen ${BECAUSE}`);
    await setAccountStatus(stores, id, 'frozen', 'excess');
  }
}

const BECAUSE = 'because its requests cost more than their holds; see docs/operating.md';

async function above(
  { database }: Stores,
  table: 'api_keys' | 'accounts',
  aboveE8: bigint,
): Promise<readonly { readonly id: string; readonly excess_e8: bigint }[]> {
  return database(table)
    .where({ status: 'active' })
    .where('excess_e8', '>', 0)
    .where('excess_e8', '>', aboveE8.toString())
    .orderBy('id')
    .limit(STOPPED_AT_ONCE)
    .select('id', 'excess_e8');
}
