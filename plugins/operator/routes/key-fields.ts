import type { AccountKey } from '../../../core/accounts/keys';
import { KEY, showKey } from '../../../core/api/key-fields';
import { object } from '../../../core/http/shape';
import { MARKUP } from './markup';

/** Whether the key's calls may ask how they are routed (`x-tollgate-debug`). Only operators set it. */
export const DEBUG = { type: 'boolean' } as const;

/** Shows a key to operators, with the fields that only they see. */
export function showOperatorKey(key: AccountKey) {
  return { ...showKey(key), markup: key.markup ?? null };
}

/** The members of the result of `showOperatorKey`. */
export const OPERATOR_KEY_FIELDS = { ...KEY, markup: MARKUP };

export const OPERATOR_KEY = object(OPERATOR_KEY_FIELDS);
