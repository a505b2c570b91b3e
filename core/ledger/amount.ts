import { MAX_AMOUNT_E8 } from '../base/money';
import type { ReserveOutcome, ReserveRequest } from './ledger';
import { LIMIT_WINDOWS, type SpendingLimits } from './scopes';

/** Asserts that the ledger can compute exactly with this amount. Callers keep their amounts in range, so any other amount is a defect. */
export function assertAmount(amountE8: bigint, lowestE8 = 0n): void {
  if (amountE8 < lowestE8 || amountE8 > MAX_AMOUNT_E8)
    throw new RangeError(`the amount ${amountE8} is outside of the ledger's range`);
}

/** @throws RangeError for an amount that the ledger cannot compute exactly */
export function assertLimits(limits: SpendingLimits): void {
  for (const window of LIMIT_WINDOWS) if (limits[window] !== undefined) assertAmount(limits[window]);
}

/** Returns the smallest of the given amounts. `Math.min` cannot do this, because it does not accept bigints. */
export function smallest(first: bigint, ...others: readonly bigint[]): bigint {
  let least = first;
  for (const each of others) if (each < least) least = each;
  return least;
}

export function largest(first: bigint, ...others: readonly bigint[]): bigint {
  let most = first;
  for (const each of others) if (each > most) most = each;
  return most;
}

type Wanted = Pick<ReserveRequest, 'amountE8' | 'minE8'>;

/** Returns the hold of a call: at most half of what the account and the key still have, but at least the call's minimum. */
export function holdWithin(leftE8: bigint, { amountE8, minE8 = amountE8 }: Wanted): bigint {
  return smallest(amountE8, largest(minE8, leftE8 / 2n));
}

/** Returns the outcome of a repeated reserve whose reservation is still open. */
export function repeatOpen(heldE8: bigint, { amountE8, minE8 = amountE8 }: Wanted): ReserveOutcome {
  if (heldE8 < minE8 || heldE8 > amountE8) return { outcome: 'exists_with_different_amount' };
  return { outcome: 'reserved', heldE8 };
}
