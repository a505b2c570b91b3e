import type { Knex } from 'knex';
import { fail, invalidParam } from '../base/errors';
import { newId, timeOfId } from '../base/ids';
import { formatUsd, MAX_AMOUNT_E8 } from '../base/money';
import type { CreditOutcome } from '../ledger/ledger';
import { type CreditRow, sendCredit } from '../ledger/outbox/credits';
import { askLedger, ledgerUnavailable } from '../ledger/unavailable';
import { type AuditEntry, writeAudit } from '../storage/audit';
import { naming, pushAccount, requireAccount, type Stores } from './accounts';

/** A credit to add: a top-up or, with a negative amount, a debit. */
interface NewCredit {
  readonly accountId: string;
  readonly amountE8: bigint;
  /** The idempotency key, which makes retries safe. The same key with the same amount is the same credit. With another amount, the request is rejected. */
  readonly idempotencyKey: string;
  readonly note: string | undefined;
}

/** The audit entry of a credit that has another reason than a top-up, such as a repair. */
export type CreditReason = Pick<AuditEntry, 'action' | 'before'> & { readonly after: object };

interface Credit extends NewCredit {
  /** A UUIDv7, which is also the `rid` of the credit's ledger entry. */
  readonly id: string;
  readonly createdAt: Date;
  /** The balance after this credit. A retry returns the balance from after the first request. */
  readonly postedE8: bigint;
  /** Whether the credit existed already, so that this request was a retry. */
  readonly repeated: boolean;
}

/**
 * Writes the credit's row to Postgres, then its ledger entry with the same id. After a crash in between, a background loop (the sweeper)
 * sends the row again, or the caller retries with the same idempotency key.
 * @throws NOT_FOUND, CONFLICT, INSUFFICIENT_BALANCE (nothing was taken), INVALID_FIELD (the balance would exceed the maximum),
 * LEDGER_UNAVAILABLE (the row exists; a retry completes the credit)
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
      message: `This idempotency key was already used for ${formatUsd(row.amount_e8)} USD. Use another key for another amount.`,
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
      throw invalidParam('amountUsd', `the balance would exceed the maximum of ${formatUsd(MAX_AMOUNT_E8)} USD`);
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
    // The insert found the credit's row, but the select did not. In between, the row was deleted, because the ledger refused the credit.
    if (there === undefined) throw ledgerUnavailable();
    return { row: there as CreditRow, repeated: true };
  });
}

/** Sends a credit to the ledger as `sendCredit` does. Safe to repeat. If the ledger does not know the account, it sends the account first. */
export async function pushCredit(stores: Stores, creditId: string, actor: string): Promise<CreditOutcome> {
  return stores.database.transaction(async (transaction) => {
    const send = async () => {
      const sent = await askLedger(() => sendCredit(stores.ledger, transaction, creditId, actor));
      if (sent === undefined) throw ledgerUnavailable();
      return sent;
    };
    const sent = await send();
    if (sent.outcome !== 'unknown_account') return sent;
    const row = await transaction<CreditRow>('credits').where({ id: creditId }).first();
    await pushAccount(stores, transaction, row?.account_id ?? '');
    return send();
  });
}

async function insufficient({ calls }: Stores, row: CreditRow) {
  const state = await askLedger(() => calls.readAccount(row.account_id));
  return fail('INSUFFICIENT_BALANCE', {
    message: 'The available balance of the account is lower than this debit.',
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
