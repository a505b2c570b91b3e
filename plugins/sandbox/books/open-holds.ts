import type { HoldSource } from '../../../core/ledger/hold-sources';
import type { OpenHold } from '../../../core/ledger/ledger';

/**
 * Reads the holds of accepted sandboxes from their unsettled periods, to recover a lost ledger. A creation that is not accepted
 * yet is left out, because its retry takes the hold again.
 */
export const readSandboxHolds: HoldSource = async (database, accountIds) => {
  const { rows } = await database.raw<{ rows: (Omit<OpenHold, 'amountE8'> & { amount: string })[] }>(
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
