import type { DrainOptions } from './drain';

/** Credits that are sent in one go; the rest follows. */
const CREDITS_AT_ONCE = 500;

interface CreditRow {
  readonly rid: string;
  readonly accountId: string;
  readonly amount: string;
}

/**
 * Sends credits again that are rows of Postgres but have no entry yet: the process that wrote the row may have ended before
 * it told the ledger. The id makes it safe when the entry is only on its way. Answers how many it sent.
 */
export async function resendCredits({ ledger, database, log }: DrainOptions, olderThanMs = 0): Promise<number> {
  let count = 0;
  let after = '00000000-0000-0000-0000-000000000000';
  for (;;) {
    const { rows } = await database.raw<{ rows: CreditRow[] }>(
      `SELECT credit.id::text AS rid, credit.account_id::text AS "accountId", credit.amount_e8::text AS amount
       FROM credits AS credit
       WHERE credit.id > :after::uuid AND credit.created_at <= now() - make_interval(secs => :seconds::float8)
         AND credit.dropped_posted_e8 IS NULL AND NOT EXISTS (
           SELECT 1 FROM ledger_entries AS entry
           WHERE entry.account_id = credit.account_id AND entry.rid = credit.id AND entry.kind = 'credit')
       ORDER BY credit.id LIMIT ${CREDITS_AT_ONCE}`,
      { after, seconds: olderThanMs / 1_000 },
    );
    const last = rows.at(-1);
    if (last === undefined) return count;
    for (const { rid, accountId, amount } of rows) {
      const { outcome } = await ledger.credit({ accountId, rid, amountE8: BigInt(amount) });
      if (outcome !== 'credited')
        log.error({ rid, accountId, outcome }, 'a credit of Postgres was refused by the ledger');
    }
    count += rows.length;
    after = last.rid;
  }
}
