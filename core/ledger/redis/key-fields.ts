import type { KeySettings, KeySnapshot, SetKeyRequest } from '../ledger';
import { limitTexts } from '../limit-fields';

export function writeSettings({ rev: _rev, ...settings }: KeySettings): string {
  return JSON.stringify(settings);
}

export function readSettings(rev: string, settings: string): KeySettings {
  const { name, allowedModels, markup, access } = JSON.parse(settings) as Omit<KeySettings, 'rev'>;
  return { rev: Number(rev), name, allowedModels, markup, ...(access !== undefined && { access }) };
}

/** Returns the settings of a key that an operator decides, as fields of its hash: field, value, field, value. An empty value means no field. */
export function settingFields(key: SetKeyRequest): readonly string[] {
  const { status, settings } = key;
  const limits = limitTexts(key);
  const hasCaps = limits.some(([field, text]) => field !== 'limit' && text !== '');
  const others = { status, rev: String(settings.rev), settings: writeSettings(settings), caps: hasCaps ? '1' : '' };
  return [...Object.entries(others), ...limits].flat();
}

/** Returns what a key has spent, as its hash has it: field, value, field, value. */
export function counterFields({ spentE8, windows }: KeySnapshot): readonly string[] {
  return [
    'spent',
    spentE8.toString(),
    ...(windows === undefined ? [] : ['day', String(windows.day), 'day_spent', windows.daySpentE8.toString()]),
    ...(windows === undefined ? [] : ['month', String(windows.month), 'month_spent', windows.monthSpentE8.toString()]),
  ];
}
