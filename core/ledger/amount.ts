import { MAX_AMOUNT_E8 } from '../money';

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
