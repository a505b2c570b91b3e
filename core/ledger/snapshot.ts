import { smallest } from './amount';
import type { AccountSnapshot, EntryKind, OpenHold } from './ledger';
import { chainOf } from './scopes';

/** The state that an outbox entry gives its reservation, by the entry's kind. For a credit, it is the state of the tombstone that keeps the credit's id. */
export const STATE_AFTER: Readonly<Record<EntryKind, 'credited' | 'settled' | 'released' | 'expired'>> = {
  credit: 'credited',
  charge: 'settled',
  release: 'released',
  expire: 'expired',
};

interface CoveredHolds {
  readonly holds: readonly OpenHold[];
  readonly heldE8: bigint;
  /** By the names of scopes, including the account and the keys. */
  readonly heldByScope: ReadonlyMap<string, bigint>;
}

/**
 * Returns the open holds of a snapshot as far as its balance covers them. The balance may lack a credit that is not in Postgres yet, and
 * holds never exceed the balance.
 */
export function coverHolds({
  accountId,
  postedE8,
  open,
}: Pick<AccountSnapshot, 'accountId' | 'postedE8' | 'open'>): CoveredHolds {
  const heldByScope = new Map<string, bigint>();
  let leftE8 = postedE8;
  const holds = open.map((hold) => {
    const amountE8 = smallest(hold.amountE8, leftE8);
    leftE8 -= amountE8;
    for (const name of chainOf(accountId, hold.scopes, hold.keyId))
      heldByScope.set(name, (heldByScope.get(name) ?? 0n) + amountE8);
    return { ...hold, amountE8 };
  });
  return { holds, heldE8: postedE8 - leftE8, heldByScope };
}
