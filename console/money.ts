/** Formats amounts of money. They arrive as decimal text and are never converted to floating-point numbers. */

const DECIMALS = 8;
const UNITS_PER_USD = 10n ** BigInt(DECIMALS);

/** Reads an amount into units of 1e-8 USD. */
export function readUsd(text: string): bigint {
  const [, sign = '', whole = '0', fraction = ''] = /^(-?)(\d+)(?:\.(\d{1,8}))?$/.exec(text) ?? [];
  const units = BigInt(whole) * UNITS_PER_USD + BigInt(fraction.padEnd(DECIMALS, '0'));
  return sign === '-' ? -units : units;
}

/** Formats the exact amount: at least two decimals, and no trailing zeros after them. */
export function exactUsd(text: string): string {
  return write(readUsd(text), 2);
}

/** Formats the exact amount for a field that has its own currency sign. */
export function plainUsd(text: string): string {
  return exactUsd(text).replace(/[$,]/g, '');
}

/** Formats an amount with all eight decimals, so that amounts align in a column. */
export function fullUsd(text: string): string {
  return write(readUsd(text), DECIMALS);
}

/** Formats an amount briefly: in cents from one dollar up, below that with the first three significant digits. */
export function shortUsd(text: string): string {
  const units = readUsd(text);
  const size = units < 0n ? -units : units;
  if (size >= UNITS_PER_USD || size === 0n) return write(roundTo(units, 2), 2);
  const leadingZeros = DECIMALS - size.toString().length;
  return write(roundTo(units, Math.min(DECIMALS, leadingZeros + 3)), 2);
}

export function addUsd(amounts: readonly string[]): string {
  return toText(amounts.reduce((sum, each) => sum + readUsd(each), 0n));
}

/** Returns what is left of a limit after these amounts; negative if they exceed it. */
export function leftOf(limit: string, taken: readonly string[]): string {
  return toText(readUsd(limit) - readUsd(addUsd(taken)));
}

/** Converts an amount to a number for the height in a chart. The number is inexact, so use it only for drawing. */
export function toHeight(text: string): number {
  return Number(readUsd(text)) / Number(UNITS_PER_USD);
}

/** Returns the share of `part` in `whole`, from 0 to 1. */
export function shareOf(part: string, whole: string): number {
  const total = readUsd(whole);
  return total <= 0n ? 0 : Math.min(1, Math.max(0, Number((readUsd(part) * 10_000n) / total) / 10_000));
}

/** Returns the growth from `before` to `now` in percent; undefined if `before` is zero, because no percentage exists then. */
export function changeInPercent(now: string, before: string): number | undefined {
  const base = readUsd(before);
  return base === 0n ? undefined : Number(((readUsd(now) - base) * 1_000n) / base) / 10;
}

function toText(units: bigint): string {
  const size = (units < 0n ? -units : units).toString().padStart(DECIMALS + 1, '0');
  return `${units < 0n ? '-' : ''}${size.slice(0, -DECIMALS)}.${size.slice(-DECIMALS)}`;
}

function write(units: bigint, minDecimals: number): string {
  const [whole = '0', fraction = ''] = toText(units < 0n ? -units : units).split('.');
  const kept = fraction.replace(/0+$/, '').padEnd(minDecimals, '0');
  return `${units < 0n ? '−' : ''}$${whole.replace(/\B(?=(\d{3})+$)/g, ',')}.${kept}`;
}

/** Rounds to a number of decimals; halves round away from zero. */
function roundTo(units: bigint, decimals: number): bigint {
  const step = 10n ** BigInt(DECIMALS - decimals);
  const half = units < 0n ? -step / 2n : step / 2n;
  return ((units + half) / step) * step;
}
