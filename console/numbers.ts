const WHOLE = new Intl.NumberFormat('en-US');
const SHORT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });
const PERCENT = new Intl.NumberFormat('en-US', { style: 'percent', maximumFractionDigits: 1 });

export const showCount = (count: number) => WHOLE.format(count);
/** Formats a count briefly, such as `1.2M`. */
export const showShortCount = (count: number) => (count < 10_000 ? WHOLE.format(count) : SHORT.format(count));
/** Formats a share from 0 to 1. */
export const showPercent = (share: number) => PERCENT.format(share);
/** Formats a count. null is unknown and shown as a dash, because it is not zero. */
export const showMaybe = (count: number | null) => (count === null ? '–' : WHOLE.format(count));

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${showCount(count)} ${count === 1 ? one : many}`;
}
