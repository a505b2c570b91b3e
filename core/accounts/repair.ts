import { COMPENSATION, type Violation } from '../ledger/verify/invariants';
import { writeAudit } from '../storage/audit';
import type { Stores } from './accounts';
import { addCredit, type CreditReason, pushCredit } from './credits';

/** How the gateway repaired a violation of a ledger invariant; null if no new entry can repair the violation and an operator must investigate. */
export type Repair = 'expired' | 'credit_sent' | 'charge_credited' | null;

/**
 * Repairs a violation only by adding entries: existing entries stay, and no balance moves without an entry. It releases overdue holds,
 * sends credits without an entry, and credits a charge of a reservation that was already closed. Any other repair would guess whose money
 * it is. Safe to repeat.
 */
export async function repair(stores: Stores, violation: Violation, actor: string): Promise<Repair> {
  const done = await compensate(stores, violation, actor);
  // Writes no audit entry for a credited charge, because `addCredit` has already written one.
  if (done === null || done === 'charge_credited') return done;
  await stores.database.transaction((transaction) =>
    writeAudit(transaction, { actor, subject: `account:${violation.accountId}`, ...reasonOf(violation, done) }),
  );
  return done;
}

function reasonOf({ invariant, seq, rid, expected, found }: Violation, repair: Repair): CreditReason {
  return { action: 'ledger.repair', before: { invariant, seq, rid, expected, found }, after: { repair } };
}

async function compensate(stores: Stores, violation: Violation, actor: string): Promise<Repair> {
  const { invariant, accountId, keyId, rid, seq } = violation;
  if (accountId === null || rid === null) return null;
  if (invariant === 'hold_overdue' && keyId !== null) {
    const { outcome } = await stores.ledger.expire({ accountId, keyId }, rid);
    return outcome === 'expired' ? 'expired' : null;
  }
  if (invariant === 'credit_missing' && seq === null) {
    const { outcome } = await pushCredit(stores, rid, actor);
    return outcome === 'credited' ? 'credit_sent' : null;
  }
  if (invariant === 'closed_twice' && seq !== null) {
    const amountE8 = await chargedBy(stores, accountId, rid, seq);
    if (amountE8 === 0n) return null;
    const note = `Entry ${seq} charged a reservation that was already closed.`;
    const wanted = { accountId, amountE8, idempotencyKey: COMPENSATION + rid, note };
    await addCredit(stores, wanted, actor, reasonOf(violation, 'charge_credited'));
    return 'charge_credited';
  }
  return null;
}

async function chargedBy({ database }: Stores, accountId: string, rid: string, seq: number): Promise<bigint> {
  const row = await database('ledger_entries')
    .select('amount_e8 as amountE8')
    .where({ account_id: accountId, rid, seq, kind: 'charge' })
    .first<{ amountE8: bigint } | undefined>();
  return row === undefined ? 0n : -row.amountE8;
}
