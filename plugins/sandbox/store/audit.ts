import type { Knex } from 'knex';
import type { Ledger } from '../../../core/ledger/ledger';
import type { HoldSource, ReportedHold } from '../../../core/ledger/recovery';
import { shardOf } from '../../../core/ledger/shard';

/**
 * Queries that each count the rows that break an invariant. Amounts are compared with ledger entries only once these have had
 * time to reach Postgres.
 */
export const SANDBOX_INVARIANTS = {
  final_with_open_segment: `
    SELECT count(*) FROM usage_segments AS segment JOIN sandboxes AS sandbox ON sandbox.id = segment.sandbox_id
    WHERE segment.ends_at IS NULL AND sandbox.observed_state IN ('FAILED', 'TERMINATED')`,
  final_with_open_period: `
    SELECT count(*) FROM billing_periods AS period JOIN sandboxes AS sandbox ON sandbox.id = period.sandbox_id
    WHERE period.status <> 'SETTLED' AND sandbox.observed_state IN ('FAILED', 'TERMINATED')`,
  active_without_period: `
    SELECT count(*) FROM sandboxes AS sandbox
    WHERE sandbox.admission = 'ACCEPTED' AND sandbox.observed_state NOT IN ('FAILED', 'TERMINATED')
      AND NOT EXISTS (SELECT FROM billing_periods WHERE sandbox_id = sandbox.id AND status <> 'SETTLED')`,
  total_is_not_the_sum_of_periods: `
    SELECT count(*) FROM sandboxes AS sandbox
    WHERE sandbox.total_cost_e8 <> (
      SELECT coalesce(sum(amount_e8), 0) FROM billing_periods WHERE sandbox_id = sandbox.id AND status = 'SETTLED')`,
  due_is_not_the_sum_of_lines: `
    SELECT count(*) FROM billing_periods AS period
    WHERE period.status = 'SETTLED' AND (period.amount_e8 + period.shortfall_e8 <> period.due_e8
      OR period.due_e8 <> (SELECT coalesce(sum(amount_e8), 0) FROM billing_lines WHERE period_id = period.id))`,
  amount_is_not_what_the_ledger_charged: `
    SELECT count(*) FROM billing_periods AS period
    LEFT JOIN ledger_entries AS entry
      ON entry.account_id = period.account_id AND entry.rid = period.hold_id AND entry.kind = 'charge'
    WHERE period.status = 'SETTLED' AND period.settled_at < :settledBefore
      AND period.settled_at > :settledAfter AND coalesce(-entry.amount_e8, 0) <> period.amount_e8`,
  settling_for_long: `
    SELECT count(*) FROM billing_periods WHERE status = 'SETTLING' AND ended_at < :settlingBefore`,
  overdue: `
    SELECT count(*) FROM sandboxes
    WHERE admission = 'ACCEPTED' AND observed_state NOT IN ('FAILED', 'TERMINATED') AND next_at < :dueBefore`,
} as const;

type SandboxInvariant = keyof typeof SANDBOX_INVARIANTS;

const MINUTE_MS = 60_000;

/** Returns how many rows break each invariant. */
export async function checkInvariants(database: Knex, nowMs: number): Promise<ReadonlyMap<SandboxInvariant, number>> {
  const times = {
    settledBefore: new Date(nowMs - 2 * MINUTE_MS),
    settledAfter: new Date(nowMs - 24 * 60 * MINUTE_MS),
    settlingBefore: new Date(nowMs - 5 * MINUTE_MS),
    dueBefore: new Date(nowMs - 5 * MINUTE_MS),
  };
  const found = new Map<SandboxInvariant, number>();
  for (const [name, query] of Object.entries(SANDBOX_INVARIANTS)) {
    const bindings = Object.fromEntries(Object.entries(times).filter(([each]) => query.includes(`:${each}`)));
    const { rows } = await database.raw<{ rows: { count: bigint }[] }>(query, bindings);
    found.set(name as SandboxInvariant, Number(rows[0]?.count ?? 0));
  }
  return found;
}

const ACCOUNTS_AT_ONCE = 1_000;
/** The lowest UUID, from which the first page starts. */
const NO_ID = '00000000-0000-0000-0000-000000000000';

/**
 * Finds holds of sandboxes that have no unsettled period, because nothing would ever release such holds. A creation writes its period
 * before it takes the hold, and a settlement releases the hold before it closes the period. Two checks in a row that see the same hold
 * therefore rule out work in progress.
 */
export class StrayHolds {
  #seen: ReadonlySet<string> = new Set();

  constructor(
    private readonly database: Knex,
    private readonly ledger: Pick<Ledger, 'inspect'>,
  ) {}

  /** Returns the ids of stray holds (holds without an unsettled billing period) that the previous check found too. @throws LedgerUnavailable */
  async look(): Promise<readonly string[]> {
    const found: string[] = [];
    for (let after = NO_ID; ; ) {
      const accounts: { id: string }[] = await this.database('account_rates')
        .where({ action: 'sandbox' })
        .where('account_id', '>', after)
        .orderBy('account_id')
        .limit(ACCOUNTS_AT_ONCE)
        .select({ id: 'account_id' });
      found.push(...(await this.#strayOf(accounts.map(({ id }) => id))));
      const last = accounts.at(-1);
      if (last === undefined || accounts.length < ACCOUNTS_AT_ONCE) break;
      after = last.id;
    }
    const before = this.#seen;
    this.#seen = new Set(found);
    return found.filter((rid) => before.has(rid));
  }

  async #strayOf(accountIds: readonly string[]): Promise<readonly string[]> {
    const held: string[] = [];
    for (const shard of new Set(accountIds.map(shardOf))) {
      const ids = accountIds.filter((id) => shardOf(id) === shard);
      const { holds } = await this.ledger.inspect(shard, ids, []);
      held.push(...holds.filter(({ ofCall }) => !ofCall).map(({ rid }) => rid));
    }
    const open = this.database('billing_periods').whereIn('hold_id', held).whereNot({ status: 'SETTLED' });
    const periods: { rid: string }[] = await open.select({ rid: 'hold_id' });
    const known = new Set(periods.map(({ rid }) => rid));
    return held.filter((rid) => !known.has(rid));
  }
}

/**
 * Reads the holds of accepted sandboxes from their unsettled periods, to recover a lost ledger. It skips a creation that is not accepted
 * yet, because the retry of that creation takes the hold again.
 */
export const readSandboxHolds: HoldSource = async (database, accountIds) => {
  const { rows } = await database.raw<{ rows: (Omit<ReportedHold, 'amountE8'> & { amount: string })[] }>(
    `SELECT period.account_id::text AS "accountId", period.key_id::text AS "keyId", period.hold_id::text AS rid,
            period.reserved_e8::text AS amount
     FROM billing_periods AS period
     JOIN jsonb_array_elements_text(:accountIds::jsonb) AS account ON period.account_id = account.value::uuid
     JOIN sandboxes AS sandbox ON sandbox.id = period.sandbox_id
     WHERE period.status <> 'SETTLED' AND sandbox.admission = 'ACCEPTED'
     ORDER BY period.hold_id`,
    { accountIds: JSON.stringify(accountIds) },
  );
  return rows.map(({ amount, ...hold }) => ({ ...hold, amountE8: BigInt(amount) }));
};
