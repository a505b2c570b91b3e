import type { Logger } from 'pino';
import { Counter } from 'prom-client';
import { metrics } from '../metrics';
import { formatUsd } from '../money';
import { type Stores, setAccountStatus } from './accounts';

const freezes = new Counter({
  name: 'tollgate_excess_freezes_total',
  help: 'Accounts frozen because their requests cost more than their holds.',
  registers: [metrics],
});

const FROZEN_AT_ONCE = 100;

/** Freezes active accounts whose requests cost more than `aboveE8` above their holds since the account was last unfrozen. */
export async function freezeForExcess(stores: Stores, aboveE8: bigint, log: Logger): Promise<void> {
  const rows: { id: string; excess_e8: bigint }[] = await stores
    .database('accounts')
    .where({ status: 'active' })
    .where('excess_e8', '>', aboveE8.toString())
    .orderBy('id')
    .limit(FROZEN_AT_ONCE)
    .select('id', 'excess_e8');
  for (const { id, excess_e8: excessE8 } of rows) {
    // Count and log first: if the ledger fails after the database has the freeze, no later sweep sees the account again.
    freezes.inc();
    log.warn(
      { accountId: id, excessUsd: formatUsd(excessE8) },
      'the account was frozen because its requests cost more than their holds; see docs/operating.md',
    );
    await setAccountStatus(stores, id, 'frozen', 'excess');
  }
}
