import type { Knex } from 'knex';
import { fail } from '../../../core/base/errors';
import { newId } from '../../../core/base/ids';
import type { OfferedInstance, Offering } from '../offerings/offering';
import { firstOf, toRow } from './rows';

/** A quote: an offering at a fixed price, for one creation. */
interface Quote {
  readonly id: string;
  readonly accountId: string;
  readonly offeringId: string;
  readonly offeringRevision: string;
  readonly offering: Offering;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  /** The sandbox that was created with the quote. null: none yet. */
  readonly usedBy: string | null;
}

const QUOTE_FOR_MS = 300_000;

export async function insertQuote(
  database: Knex,
  accountId: string,
  { offering, revision }: OfferedInstance,
  nowMs: number,
): Promise<Quote> {
  const quote: Quote = {
    id: newId(),
    accountId,
    offeringId: offering.id,
    offeringRevision: revision,
    offering,
    createdAtMs: nowMs,
    expiresAtMs: nowMs + QUOTE_FOR_MS,
    usedBy: null,
  };
  await database('quotes').insert(toRow(quote));
  return quote;
}

/**
 * Returns the offering that a quote promises, if the quote is still valid.
 * @throws QUOTE_INVALID, QUOTE_USED, QUOTE_EXPIRED, OFFERING_CHANGED
 */
export async function redeemable(
  database: Knex,
  accountId: string,
  quoteId: string,
  offered: readonly OfferedInstance[],
  nowMs: number,
): Promise<OfferedInstance> {
  const quote = await firstOf<Quote>(database('quotes').where({ id: quoteId, account_id: accountId }));
  if (quote === undefined) throw fail('QUOTE_INVALID', { param: 'selection.quoteId' });
  if (quote.usedBy !== null) throw fail('QUOTE_USED', { param: 'selection.quoteId' });
  if (quote.expiresAtMs <= nowMs) throw fail('QUOTE_EXPIRED', { param: 'selection.quoteId' });
  const now = offered.find(({ offering }) => offering.id === quote.offeringId);
  if (now?.isEnabled !== true || now.revision !== quote.offeringRevision) throw fail('OFFERING_CHANGED');
  return now;
}

/** Marks a quote as used by this sandbox. Returns false if another creation used it first or it has just expired. */
export async function claimQuote(
  transaction: Knex,
  quoteId: string,
  sandboxId: string,
  nowMs: number,
): Promise<boolean> {
  const claimed = transaction('quotes').where({ id: quoteId, used_by: null }).where('expires_at', '>', new Date(nowMs));
  return (await claimed.update({ used_by: sandboxId })) === 1;
}

/**
 * Removes a sandbox that was never accepted and makes its quote usable again. Returns false if a concurrent request has already removed the
 * sandbox or changed its `admission`.
 */
export async function withdraw(
  database: Knex,
  sandboxId: string,
  admission: 'PENDING' | 'CANCELLED',
): Promise<boolean> {
  return database.transaction(async (transaction) => {
    const gone = await transaction('sandboxes').where({ id: sandboxId, admission }).delete();
    if (gone === 1) await transaction('quotes').where({ used_by: sandboxId }).update({ used_by: null });
    return gone === 1;
  });
}

/** How long a quote is kept after it expired, so that QUOTE_EXPIRED and QUOTE_USED can explain a rejection. Later the quote is unknown. */
const EXPLAINED_MS = 3_600_000;

/** Deletes quotes an hour after they expired. A sandbox has its own copy of the offering. */
export async function forgetQuotes(database: Knex, nowMs: number): Promise<void> {
  await database('quotes')
    .where('expires_at', '<', new Date(nowMs - EXPLAINED_MS))
    .delete();
}
