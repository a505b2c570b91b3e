import type { Knex } from 'knex';
import { timeOfId } from '../../base/ids';
import { formatUsd } from '../../base/money';
import { writeAudit } from '../../storage/audit';
import type { CreditOutcome, Ledger } from '../ledger';
import type { ShipOptions } from './ship';

export interface CreditRow {
  readonly id: string;
  readonly account_id: string;
  readonly amount_e8: bigint;
  readonly idempotency_key: string;
  readonly note: string | null;
  readonly created_at: Date;
  /** The balance after this credit. The partition task sets it when it drops the month that contains the credit's entry. */
  readonly dropped_posted_e8?: bigint | null;
}

const FIRST_ID = '00000000-0000-0000-0000-000000000000';

/** How many credits one query reads. */
const CREDITS_AT_ONCE = 500;

/**
 * Returns ids of credits that have a row in Postgres and no entry yet: in order, after a given id, 500 at most. Either the process that
 * wrote the row stopped before it sent the credit to the ledger, or the shipper has not shipped the entry yet.
 */
export async function unsentCredits(
  database: Knex,
  { after = FIRST_ID, olderThanMs = 0 }: { readonly after?: string | undefined; readonly olderThanMs?: number },
): Promise<readonly string[]> {
  const { rows } = await database.raw<{ rows: { id: string }[] }>(
    `SELECT credit.id::text AS id FROM credits AS credit
     WHERE credit.id > :after::uuid AND credit.created_at <= now() - make_interval(secs => :seconds::float8)
       AND credit.dropped_posted_e8 IS NULL AND NOT EXISTS (
         SELECT 1 FROM ledger_entries AS entry
         WHERE entry.account_id = credit.account_id AND entry.rid = credit.id AND entry.kind = 'credit')
     ORDER BY credit.id LIMIT ${CREDITS_AT_ONCE}`,
    { after, seconds: olderThanMs / 1_000 },
  );
  return rows.map(({ id }) => id);
}

/**
 * Sends a credit to the ledger; safe to repeat, because the ledger knows the credit's id. If the ledger refuses the credit, this deletes
 * the credit's row, because the balance may differ at a later attempt. A lock on the row keeps other processes from sending the credit at
 * the same time. Returns undefined if the row does not exist.
 */
export async function sendCredit(
  ledger: Ledger,
  transaction: Knex.Transaction,
  creditId: string,
  actor: string,
): Promise<CreditOutcome | undefined> {
  const row = await transaction<CreditRow>('credits').where({ id: creditId }).forUpdate().first();
  if (row === undefined) return undefined;
  const { account_id: accountId, amount_e8: amountE8, dropped_posted_e8: droppedE8 = null } = row;
  if (droppedE8 !== null) return { outcome: 'credited', postedE8: droppedE8 };
  // The ledger forgets a credit's id some time after its entry was written. From then on, only the entry shows that the credit was booked.
  const entry = { account_id: accountId, rid: creditId, kind: 'credit', created_at: new Date(timeOfId(creditId)) };
  const written = await transaction('ledger_entries')
    .where(entry)
    .first<{ posted_e8: bigint } | undefined>('posted_e8');
  if (written !== undefined) return { outcome: 'credited', postedE8: written.posted_e8 };
  const sent = await ledger.credit({ accountId, rid: creditId, amountE8 });
  if (sent.outcome === 'insufficient_balance' || sent.outcome === 'above_maximum') {
    await transaction('credits').where({ id: creditId }).delete();
    await writeAudit(transaction, {
      actor,
      action: 'account.credit.refused',
      subject: `account:${accountId}`,
      before: { creditId, amountUsd: formatUsd(amountE8) },
      after: { outcome: sent.outcome },
    });
  }
  return sent;
}

/** Sends all credits that have no entry yet to the ledger. Returns how many it sent. */
export async function resendCredits({
  ledger,
  database,
  log,
}: ShipOptions & { readonly ledger: Ledger }): Promise<number> {
  let count = 0;
  let ids = await unsentCredits(database, {});
  while (ids.length > 0) {
    for (const id of ids) {
      const sent = await database.transaction((transaction) => sendCredit(ledger, transaction, id, 'recovery'));
      if (sent !== undefined && sent.outcome !== 'credited')
        log.warn({ creditId: id, outcome: sent.outcome }, 'the ledger rejected a credit that is recorded in Postgres');
    }
    count += ids.length;
    ids = await unsentCredits(database, { after: ids.at(-1) });
  }
  return count;
}
