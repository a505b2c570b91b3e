import { smallest } from './amount';
import type { AccountSnapshot, EntryKind, OpenHold } from './ledger';

/** The state of a reservation, or of a credit's tombstone, after an entry of the given kind. */
export const STATE_AFTER: Readonly<Record<EntryKind, 'credited' | 'settled' | 'released' | 'expired'>> = {
  credit: 'credited',
  charge: 'settled',
  release: 'released',
  expire: 'expired',
};

interface CoveredHolds {
  readonly holds: readonly OpenHold[];
  readonly heldE8: bigint;
  readonly heldByKey: ReadonlyMap<string, bigint>;
}

/**
 * Returns the open holds of a snapshot as far as its balance covers them. The balance may lack a credit that is not in Postgres yet, and
 * holds never exceed the balance.
 */
export function coverHolds({ postedE8, open }: Pick<AccountSnapshot, 'postedE8' | 'open'>): CoveredHolds {
  const heldByKey = new Map<string, bigint>();
  let leftE8 = postedE8;
  const holds = open.map((hold) => {
    const amountE8 = smallest(hold.amountE8, leftE8);
    leftE8 -= amountE8;
    heldByKey.set(hold.keyId, (heldByKey.get(hold.keyId) ?? 0n) + amountE8);
    return { ...hold, amountE8 };
  });
  return { holds, heldE8: postedE8 - leftE8, heldByKey };
}
