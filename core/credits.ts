import type { Knex } from 'knex';
import { naming, pushAccount, requireAccount, type Stores } from './accounts';
import { type AuditEntry, writeAudit } from './audit';
import { fail } from './errors';
import { newId, timeOfId } from './ids';
import type { CreditOutcome } from './ledger/ledger';
import { askLedger, ledgerUnavailable } from './ledger/unavailable';
import { formatUsd, MAX_AMOUNT_E8 } from './money';

/** A top-up, or with a negative amount an adjustment. */
export interface NewCredit {
  readonly accountId: string;
  readonly amountE8: bigint;
  /** The same key with the same amount is the same credit; with another amount it is refused. */
  readonly idempotencyKey: string;
  readonly note: string | undefined;
}

/** What is said of a credit in the audit log, where it is more than that it was given. */
export type CreditReason = Pick<AuditEntry, 'action' | 'before'> & { readonly after: object };

export interface Credit extends NewCredit {
  /** UUIDv7, and the `rid` of its ledger entry. */
  readonly id: string;
  readonly createdAt: Date;
  /** The balance after it, or after a repetition the balance then. */
  readonly postedE8: bigint;
  /** It was there already. */
  readonly repeated: boolean;
}

interface CreditRow {
  readonly id: string;
  readonly account_id: string;
  readonly amount_e8: bigint;
  readonly idempotency_key: string;
  readonly note: string | null;
  readonly created_at: Date;
  /** The balance after it, once its entry was dropped with its month. */
  readonly dropped_posted_e8?: bigint | null;
}

/**
 * The row comes first, then the ledger, by the same id: a crash in between is repaired by whoever finds a row without a
 * ledger entry and sends it again, or by the caller who repeats with the same idempotency key.
 * @throws NOT_FOUND, CONFLICT, INSUFFICIENT_BALANCE (nothing was taken), INVALID_FIELD (above the largest balance),
 * LEDGER_UNAVAILABLE (the row is there; a repetition completes it)
 */
export async function addCredit(
  stores: Stores,
  wanted: NewCredit,
  actor: string,
  reason?: CreditReason,
): Promise<Credit> {
  await requireAccount(stores.database, wanted.accountId);
  const { row, repeated } = await writeOnce(stores.database, wanted, actor, reason);
  if (row.amount_e8 !== wanted.amountE8) {
    throw fail('CONFLICT', {
      param: 'idempotencyKey',
      message: `This idempotency key was used for ${formatUsd(row.amount_e8)} USD before.`,
    });
  }
  const details = { creditId: row.id, idempotencyKey: row.idempotency_key };
  const outcome = await naming(details, () => pushCredit(stores, row.id, actor));
  switch (outcome.outcome) {
    case 'credited':
      return toCredit(row, outcome.postedE8, repeated);
    case 'insufficient_balance':
      throw await insufficient(stores, row);
    case 'above_maximum':
      throw fail('INVALID_FIELD', {
        param: 'amountUsd',
        message: `amountUsd: a balance is at most ${formatUsd(MAX_AMOUNT_E8)} USD`,
      });
    default:
      throw fail('LEDGER_UNAVAILABLE', { retryAfterSeconds: 1, details });
  }
}

async function writeOnce(
  database: Knex,
  { accountId, amountE8, idempotencyKey, note }: NewCredit,
  actor: string,
  reason?: CreditReason,
): Promise<{ row: CreditRow; repeated: boolean }> {
  const id = newId();
  const row: CreditRow = {
    id,
    account_id: accountId,
    amount_e8: amountE8,
    idempotency_key: idempotencyKey,
    note: note ?? null,
    created_at: new Date(timeOfId(id)),
  };
  return database.transaction(async (transaction) => {
    const written = await transaction('credits')
      .insert(row)
      .onConflict(['account_id', 'idempotency_key'])
      .ignore()
      .returning('id');
    if (written.length === 1) {
      await writeAudit(transaction, {
        actor,
        action: amountE8 < 0n ? 'account.debit' : 'account.credit',
        subject: `account:${accountId}`,
        ...reason,
        after: { creditId: id, amountUsd: formatUsd(amountE8), idempotencyKey, note: row.note, ...reason?.after },
      });
      return { row, repeated: false };
    }
    const where = { account_id: accountId, idempotency_key: idempotencyKey };
    const there = await transaction<CreditRow>('credits').where(where).first();
    // Written and refused by the ledger between our two statements.
    if (there === undefined) throw ledgerUnavailable();
    return { row: there as CreditRow, repeated: true };
  });
}

/**
 * Tells the ledger of a credit, again if need be. What the ledger refuses loses its row, so that nobody sends it again
 * later, when the balance may be another. Under the row's lock: nobody else can be sending it meanwhile.
 */
export async function pushCredit(stores: Stores, creditId: string, actor: string): Promise<CreditOutcome> {
  return stores.database.transaction(async (transaction) => {
    const row = await transaction<CreditRow>('credits').where({ id: creditId }).forUpdate().first();
    if (row === undefined) throw ledgerUnavailable();
    const { account_id: accountId, amount_e8: amountE8, dropped_posted_e8: droppedE8 = null } = row;
    if (droppedE8 !== null) return { outcome: 'credited', postedE8: droppedE8 };
    // The ledger remembers an id for a while after its entry was written; from then on the entry does.
    const entry = { account_id: accountId, rid: creditId, kind: 'credit', created_at: new Date(timeOfId(creditId)) };
    const written = await transaction('ledger_entries')
      .where(entry)
      .first<{ posted_e8: bigint } | undefined>('posted_e8');
    if (written !== undefined) return { outcome: 'credited', postedE8: written.posted_e8 };
    const send = () => askLedger(() => stores.ledger.credit({ accountId, rid: creditId, amountE8 }));
    let sent = await send();
    if (sent.outcome === 'unknown_account') {
      await pushAccount(stores, transaction, accountId);
      sent = await send();
    }
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
  });
}

async function insufficient({ ledger }: Stores, row: CreditRow) {
  const state = await askLedger(() => ledger.readAccount(row.account_id));
  return fail('INSUFFICIENT_BALANCE', {
    message: 'The account has less available than this debit takes.',
    details: { requiredUsd: formatUsd(-row.amount_e8), availableUsd: formatUsd(state?.availableE8 ?? 0n) },
  });
}

function toCredit(row: CreditRow, postedE8: bigint, repeated: boolean): Credit {
  return {
    id: row.id,
    accountId: row.account_id,
    amountE8: row.amount_e8,
    idempotencyKey: row.idempotency_key,
    note: row.note ?? undefined,
    createdAt: row.created_at,
    postedE8,
    repeated,
  };
}
