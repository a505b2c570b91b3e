import { smallest } from './amount';
import type { AccountSnapshot, EntryKind, OpenHold } from './ledger';

/** The state a reservation, or a credit's tombstone, is in after an entry of this kind. */
export const STATE_AFTER: Readonly<Record<EntryKind, 'credited' | 'settled' | 'released' | 'expired'>> = {
  credit: 'credited',
  charge: 'settled',
  release: 'released',
  expire: 'expired',
};

export interface CoveredHolds {
  readonly holds: readonly OpenHold[];
  readonly heldE8: bigint;
  readonly heldByKey: ReadonlyMap<string, bigint>;
}

/**
 * The open holds of a snapshot as far as its balance covers them: a top-up that is only on its way to Postgres may be
 * missing in it, and a hold is never above what there is.
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
