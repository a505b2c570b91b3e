import { MAX_AMOUNT_E8 } from '../base/money';
import type { ReserveOutcome, ReserveRequest } from './ledger';

/** Asserts that the ledger computes with this amount exactly. Callers keep their amounts in that range: anything else is a defect. */
export function assertAmount(amountE8: bigint, lowestE8 = 0n): void {
  if (amountE8 < lowestE8 || amountE8 > MAX_AMOUNT_E8) throw new RangeError(`not an amount of the ledger: ${amountE8}`);
}

/** Returns the smallest amount. Math.min does not accept bigints. */
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

/** Returns the hold of a call where account and key have this much left: at most half of it, but at least what serves the call. */
export function holdWithin(leftE8: bigint, { amountE8, minE8 = amountE8 }: Wanted): bigint {
  return smallest(amountE8, largest(minE8, leftE8 / 2n));
}

/** Returns the answer to a repeated reserve whose reservation is open. */
export function repeatOpen(heldE8: bigint, { amountE8, minE8 = amountE8 }: Wanted): ReserveOutcome {
  if (heldE8 < minE8 || heldE8 > amountE8) return { outcome: 'exists_with_different_amount' };
  return { outcome: 'reserved', heldE8 };
}
