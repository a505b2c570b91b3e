/** The limits of an API key as dialogs ask for them: what it may spend in USD, and what it may ask in a minute. */
export const SPENDING_LIMITS = [
  { name: 'balanceLimit', label: 'In all' },
  { name: 'dailyLimit', label: 'A day' },
  { name: 'monthlyLimit', label: 'A month' },
] as const;

export const RATE_LIMITS = [
  { name: 'callsPerMinute', label: 'Calls a minute' },
  { name: 'tokensPerMinute', label: 'Tokens a minute' },
] as const;

export const LIMIT_NAMES = [...SPENDING_LIMITS, ...RATE_LIMITS].map(({ name }) => name);
export type LimitName = (typeof LIMIT_NAMES)[number];

/** A limit as its field shows it: empty for none, without the zeros behind the last digit that counts. */
export function limitText(limit: string | number | null | undefined): string {
  return String(limit ?? '').replace(/(\.\d\d\d*?)0+$/, '$1');
}

/** Every limit as the interface wants it; null where the field is empty. */
export function limitsOf(textOf: (name: LimitName) => string): Record<string, string | number | null> {
  const bodies = (names: readonly { name: LimitName }[], read: (text: string) => string | number) =>
    names.map(({ name }) => [name, textOf(name) === '' ? null : read(textOf(name))]);
  return Object.fromEntries([...bodies(SPENDING_LIMITS, String), ...bodies(RATE_LIMITS, Number)]);
}
