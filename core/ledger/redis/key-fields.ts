import { setLimits } from '../key-limits';
import type { KeyLimits, KeySettings, KeySnapshot, SetKeyRequest } from '../ledger';

/** Fields of a key's hash, in the order in which limits are written and read. */
export const LIMIT_FIELDS = ['limit', 'day_limit', 'month_limit', 'calls', 'tokens'] as const;

/** The limits as set-key.lua takes them: texts, empty for none. */
export function limitTexts(limits: KeyLimits): readonly string[] {
  const { limitE8, dailyLimitE8, monthlyLimitE8, callsPerMinute, tokensPerMinute } = limits;
  return [limitE8, dailyLimitE8, monthlyLimitE8, callsPerMinute, tokensPerMinute].map((each) => each?.toString() ?? '');
}

export function readLimits(texts: readonly (string | null | undefined)[]): KeyLimits {
  const [limit, day, month, calls, tokens] = texts.map((text) => text || undefined);
  const amount = (text: string | undefined) => (text === undefined ? undefined : BigInt(text));
  const count = (text: string | undefined) => (text === undefined ? undefined : Number(text));
  return setLimits({
    limitE8: amount(limit),
    dailyLimitE8: amount(day),
    monthlyLimitE8: amount(month),
    callsPerMinute: count(calls),
    tokensPerMinute: count(tokens),
  });
}

export function writeSettings({ rev: _rev, ...settings }: KeySettings): string {
  return JSON.stringify(settings);
}

export function readSettings(rev: string, settings: string): KeySettings {
  const { name, allowedModels, markup, access } = JSON.parse(settings) as Omit<KeySettings, 'rev'>;
  return { rev: Number(rev), name, allowedModels, markup, ...(access !== undefined && { access }) };
}

/** What an operator decides of a key, as its hash has it: field, value, field, value. */
export function settingFields(key: SetKeyRequest): readonly string[] {
  const { status, settings } = key;
  const limits = limitTexts(key);
  const caps = limits.slice(1).some((text) => text !== '');
  return [
    'status',
    status,
    'rev',
    String(settings.rev),
    'settings',
    writeSettings(settings),
    ...LIMIT_FIELDS.flatMap((field, index) => (limits[index] ? [field, limits[index]] : [])),
    ...(caps ? ['caps', '1'] : []),
  ];
}

/** What it has spent, likewise. */
export function counterFields({ spentE8, windows }: KeySnapshot): readonly string[] {
  return [
    'spent',
    spentE8.toString(),
    ...(windows === undefined ? [] : ['day', String(windows.day), 'day_spent', windows.daySpentE8.toString()]),
    ...(windows === undefined ? [] : ['month', String(windows.month), 'month_spent', windows.monthSpentE8.toString()]),
  ];
}
