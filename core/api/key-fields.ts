import type { AccountKey } from '../accounts/keys';
import { showLimits } from '../accounts/limit-columns';
import { oneOf, orNull, shape } from '../http/shape';
import { ALLOWED_MODELS, AMOUNT, readAmount, showUsd, TEXT } from './fields';

/** An API key as bodies say it, an operator's and the console's. */

/** So many at once, and then one after the other as the minute goes by. */
const BY_THE_MINUTE = { type: 'integer', minimum: 1, maximum: 1_000_000_000 } as const;

/** Of a new key. */
export const NEW_KEY_FIELDS = {
  name: TEXT,
  balanceLimit: AMOUNT,
  dailyLimit: AMOUNT,
  monthlyLimit: AMOUNT,
  callsPerMinute: BY_THE_MINUTE,
  tokensPerMinute: BY_THE_MINUTE,
  allowedModels: ALLOWED_MODELS,
} as const;

/** Of a change; null removes. */
export const KEY_CHANGE_FIELDS = {
  name: TEXT,
  balanceLimit: { ...AMOUNT, type: ['string', 'null'] },
  dailyLimit: { ...AMOUNT, type: ['string', 'null'] },
  monthlyLimit: { ...AMOUNT, type: ['string', 'null'] },
  callsPerMinute: { ...BY_THE_MINUTE, type: ['integer', 'null'] },
  tokensPerMinute: { ...BY_THE_MINUTE, type: ['integer', 'null'] },
  allowedModels: { ...ALLOWED_MODELS, type: ['array', 'null'] },
} as const;

interface LimitFields {
  readonly balanceLimit?: string | null;
  readonly dailyLimit?: string | null;
  readonly monthlyLimit?: string | null;
  readonly callsPerMinute?: number | null;
  readonly tokensPerMinute?: number | null;
}

/** @throws INVALID_FIELD */
export function readLimits({ balanceLimit, dailyLimit, monthlyLimit, callsPerMinute, tokensPerMinute }: LimitFields) {
  const amount = (field: string, text: string | null | undefined) =>
    typeof text === 'string' ? readAmount(field, text) : text;
  return {
    limitE8: amount('balanceLimit', balanceLimit),
    dailyLimitE8: amount('dailyLimit', dailyLimit),
    monthlyLimitE8: amount('monthlyLimit', monthlyLimit),
    callsPerMinute,
    tokensPerMinute,
  };
}

export function showKey(key: AccountKey) {
  return {
    id: key.id,
    accountId: key.accountId,
    name: key.name,
    prefix: key.prefix,
    suffix: key.suffix,
    status: key.status,
    ...showLimits(key.limits),
    spentUsd: showUsd(key.money?.spentE8),
    heldUsd: showUsd(key.money?.heldE8),
    allowedModels: key.allowedModels ?? null,
    debug: key.debug,
    createdAt: key.createdAt.toISOString(),
    revokedAt: key.revokedAt?.toISOString() ?? null,
  };
}

/** What `showKey` answers, as the OpenAPI document says it. */
export const KEY = {
  id: shape.uuid,
  accountId: shape.uuid,
  name: shape.text,
  prefix: shape.text,
  suffix: shape.text,
  status: oneOf('active', 'revoked'),
  balanceLimit: orNull(shape.usd),
  dailyLimit: orNull(shape.usd),
  monthlyLimit: orNull(shape.usd),
  callsPerMinute: orNull(shape.integer),
  tokensPerMinute: orNull(shape.integer),
  spentUsd: orNull(shape.usd),
  heldUsd: orNull(shape.usd),
  allowedModels: orNull(shape.texts),
  debug: shape.yes,
  createdAt: shape.time,
  revokedAt: orNull(shape.time),
};
