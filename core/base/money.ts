/**
 * The number of E8 in a USD. Money is an integer of 1e-8 USD ("E8"); a price is an integer of E8 per million tokens. A cost is computed
 * exactly and rounded up once, in `divideRoundingUp`.
 */

export const E8_PER_USD = 100_000_000n;

/** The largest amount of one operation or one balance in E8, because numbers in Redis's Lua are exact only up to 2^53. */
export const MAX_AMOUNT_E8 = 2n ** 53n - 1n;

/** The number of 1e-14 USD ("E14") in an E8. A price in E8 per million tokens is the price of one token in E14. */
export const E14_PER_E8 = 1_000_000n;

const DECIMAL = /^(0|[1-9]\d*)(?:\.(\d+))?$/;

/**
 * Converts a decimal USD amount such as `"12.5"` to E8.
 * @throws {RangeError} when it is not a plain decimal number ≥ 0, has more than 8 decimals or is above USD 90,071,992.
 */
export function parseUsd(text: string): bigint {
  const match = DECIMAL.exec(text);
  if (match === null) throw new RangeError('expected a decimal amount of USD such as "12.50"');
  const [, whole = '0', fraction = ''] = match;
  if (fraction.length > 8) throw new RangeError('expected at most 8 decimals');
  const amountE8 = BigInt(whole) * E8_PER_USD + BigInt(fraction.padEnd(8, '0'));
  if (amountE8 > MAX_AMOUNT_E8) throw new RangeError(`expected at most USD ${formatUsd(MAX_AMOUNT_E8)}`);
  return amountE8;
}

/** Returns an amount in E8 as decimal USD with exactly 8 decimals, as headers, bodies and CSV show it. */
export function formatUsd(amountE8: bigint): string {
  const sign = amountE8 < 0n ? '-' : '';
  const digits = (amountE8 < 0n ? -amountE8 : amountE8).toString().padStart(9, '0');
  return `${sign}${digits.slice(0, -8)}.${digits.slice(-8)}`;
}

/** Limits an amount to the largest that the ledger can count. Requested and reported amounts may exceed it, but no account has that much. */
export function clampToCountable(amountE8: bigint): bigint {
  return amountE8 < MAX_AMOUNT_E8 ? amountE8 : MAX_AMOUNT_E8;
}

/** Converts an exact amount in 1e-14 USD (a whole number below 2^53) to E8, rounded up as in `divideRoundingUp`. */
export function e8RoundedUp(e14: number): number {
  const rest = e14 % 1_000_000;
  return (e14 - rest) / 1_000_000 + (rest > 0 ? 1 : 0);
}

export function divideRoundingUp(numerator: bigint, denominator: bigint): bigint {
  return (numerator + denominator - 1n) / denominator;
}
