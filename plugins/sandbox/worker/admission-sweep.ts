import type { Knex } from 'knex';
import type { Ledger } from '../../../core/ledger/ledger';
import { returnQuote } from '../books/quotes';

interface PendingRow {
  readonly id: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly rid: string;
}

/**
 * Cancels pending creations whose client never returned, so that no retry accepts them. Releases their holds, then removes them;
 * the ledger then also refuses a hold that arrives late. Each step is repeated until it succeeds.
 */
export async function cancelStale(database: Knex, ledger: Pick<Ledger, 'release'>, beforeMs: number): Promise<number> {
  await database('sandboxes')
    .where({ admission: 'PENDING' })
    .where('created_at', '<', new Date(beforeMs))
    .update({ admission: 'CANCELLED' });
  const rows: PendingRow[] = await database('sandboxes as sandbox')
    .join('billing_periods as period', 'period.sandbox_id', 'sandbox.id')
    .where({ 'sandbox.admission': 'CANCELLED', 'period.sequence': 1 })
    .limit(100)
    .select('sandbox.id', {
      accountId: 'period.account_id',
      keyId: 'period.key_id',
      rid: 'period.hold_id',
    });
  let cancelled = 0;
  for (const { id, ...hold } of rows) {
    const { outcome } = await ledger.release({ ...hold, record: '' });
    if (outcome === 'not_ready') continue;
    await remove(database, id);
    cancelled += 1;
  }
  return cancelled;
}

async function remove(database: Knex, id: string): Promise<void> {
  await database.transaction(async (transaction) => {
    await transaction('sandboxes').where({ id, admission: 'CANCELLED' }).delete();
    await returnQuote(transaction, id);
  });
}
