import { E14_PER_E8 } from '../../core/money';

/** The decimals of exact sums: 1e-14 USD is the price of one token where prices per million tokens are in 1e-8 USD. */
const DECIMALS = 14;

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,3}))?$/;

/**
 * Reads a decimal number in JSON notation into 1e-14 USD, rounded to the nearest. `unitDecimals` is 0 for dollars and 2 for cents.
 * @throws {RangeError} if the text is not a decimal number
 */
export function parseE14(text: string, unitDecimals: 0 | 2): bigint {
  const match = NUMBER.exec(text);
  if (match === null) throw new RangeError(`expected a decimal number, not ${JSON.stringify(text.slice(0, 40))}`);
  const [, sign, whole = '', fraction = '', exponent = '0'] = match;
  const shift = DECIMALS - unitDecimals - fraction.length + Number(exponent);
  const digits = BigInt(whole + fraction);
  const amount = shift >= 0 ? digits * 10n ** BigInt(shift) : divideToNearest(digits, 10n ** BigInt(-shift));
  return sign === '-' ? -amount : amount;
}

/** Converts 1e-14 USD to 1e-8 USD, rounded to the nearest; halves round away from zero. */
export function toE8(amountE14: bigint): bigint {
  return amountE14 < 0n ? -divideToNearest(-amountE14, E14_PER_E8) : divideToNearest(amountE14, E14_PER_E8);
}

function divideToNearest(numerator: bigint, denominator: bigint): bigint {
  return (numerator + denominator / 2n) / denominator;
}
