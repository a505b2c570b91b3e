import type { Knex } from 'knex';
import type { Ledger } from '../../../core/ledger/ledger';
import { shardOf } from '../../../core/ledger/shard';

const ACCOUNTS_AT_ONCE = 1_000;

/**
 * Holds of sandboxes that no unsettled period accounts for: money nobody will give back. A hold is taken after its period is
 * written, and given back before the period is settled; what is seen twice is no creation or settlement that is under way.
 */
export class StrayHolds {
  #seen: ReadonlySet<string> = new Set();

  constructor(
    private readonly database: Knex,
    private readonly ledger: Pick<Ledger, 'inspect'>,
  ) {}

  /** The ids of those that were there at the last look too. @throws LedgerUnavailable */
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

  /** All that have ever asked for a sandbox, in order. */
  async #accounts(after: string | undefined): Promise<readonly string[]> {
    const rows = this.database('sandbox_create_rates').orderBy('account_id').limit(ACCOUNTS_AT_ONCE);
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
