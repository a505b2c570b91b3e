import type { AccountKey } from '../../../core/accounts/keys';
import { KEY, showKey } from '../../../core/api/key-fields';
import { object } from '../../../core/http/shape';
import { MARKUP } from './markup';

/** Whether the key may see how its calls are routed: `x-tollgate-debug`. Operators alone set it. */
export const DEBUG = { type: 'boolean' } as const;

/** A key with what only operators see of it. */
export function showOperatorKey(key: AccountKey) {
  return { ...showKey(key), markup: key.markup ?? null };
}

/** The members of what `showOperatorKey` answers. */
export const OPERATOR_KEY_FIELDS = { ...KEY, markup: MARKUP };

export const OPERATOR_KEY = object(OPERATOR_KEY_FIELDS);
