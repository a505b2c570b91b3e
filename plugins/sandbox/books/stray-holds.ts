import type { Knex } from 'knex';
import type { Ledger } from '../../../core/ledger/ledger';
import { shardOf } from '../../../core/ledger/shard';

const ACCOUNTS_AT_ONCE = 1_000;

/**
 * Finds holds of sandboxes without an unsettled period, which nothing would ever release. A creation writes its period before it
 * takes the hold, and a settlement releases the hold before it closes the period. Two checks in a row that see the same hold
 * therefore rule out work in progress.
 */
export class StrayHolds {
  #seen: ReadonlySet<string> = new Set();

  constructor(
    private readonly database: Knex,
    private readonly ledger: Pick<Ledger, 'inspect'>,
  ) {}

  /** Returns the ids of stray holds that the previous check found too. @throws LedgerUnavailable */
  async look(): Promise<readonly string[]> {
    const found: string[] = [];
    let after: string | undefined;
    do {
      const accountIds = await this.#accounts(after);
      found.push(...(await this.#strayOf(accountIds)));
      after = accountIds.length < ACCOUNTS_AT_ONCE ? undefined : accountIds.at(-1);
    } while (after !== undefined);
    const before = this.#seen;
    this.#seen = new Set(found);
    return found.filter((rid) => before.has(rid));
  }

  /** Returns a page of the accounts that have ever requested a sandbox, in order of their ids. */
  async #accounts(after: string | undefined): Promise<readonly string[]> {
    const rows = this.database('account_rates')
      .where({ action: 'sandbox' })
      .orderBy('account_id')
      .limit(ACCOUNTS_AT_ONCE);
    if (after !== undefined) rows.where('account_id', '>', after);
    return (await rows.select<{ id: string }[]>({ id: 'account_id' })).map(({ id }) => id);
  }

  async #strayOf(accountIds: readonly string[]): Promise<readonly string[]> {
    const shards = new Map<number, string[]>();
    for (const id of accountIds) shards.set(shardOf(id), [...(shards.get(shardOf(id)) ?? []), id]);
    const held: string[] = [];
    for (const [shard, ids] of shards) {
      const { holds } = await this.ledger.inspect(shard, ids, []);
      held.push(...holds.filter(({ ofCall }) => !ofCall).map(({ rid }) => rid));
    }
    if (held.length === 0) return [];
    const periods: { rid: string }[] = await this.database('billing_periods')
      .whereIn('hold_id', held)
      .whereNot({ status: 'SETTLED' })
      .select({ rid: 'hold_id' });
    const known = new Set(periods.map(({ rid }) => rid));
    return held.filter((rid) => !known.has(rid));
  }
}
