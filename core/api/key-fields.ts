import type { AccountKey } from '../accounts/keys';
import { invalidParam } from '../base/errors';
import { readAddressRange } from '../http/address-ranges';
import { oneOf, orNull, shape } from '../http/shape';
import {
  byLimitName,
  KEY_LIMIT_ROWS,
  type KeyLimitChanges,
  type ShownKeyLimits,
  showLimits,
} from '../ledger/limit-fields';
import {
  ALLOWED_MODELS,
  AMOUNT,
  ID,
  REQUIRE,
  REQUIRE_CHANGE,
  REQUIRED_TAGS,
  readAmount,
  readComingTime,
  readRequire,
  readRequiredTags,
  SHOWN_REQUIRE,
  showUsd,
  TEXT,
  TIME,
} from './fields';

/** The fields of API keys in requests and answers of the admin API and the console. */

/** A limit per minute, enforced as a token bucket: a burst of this size is allowed, and the bucket refills evenly over a minute. */
const BY_THE_MINUTE = { type: 'integer', minimum: 1, maximum: 1_000_000_000 } as const;

const ADDRESSES = {
  type: 'array',
  minItems: 1,
  maxItems: 100,
  uniqueItems: true,
  items: { type: 'string', maxLength: 60 },
  example: ['203.0.113.0/24', '2001:db8::/32'],
} as const;

/** The fields of a request that creates a key. `teamId` and `memberId` are those to which the key's calls belong. */
export const NEW_KEY_FIELDS = {
  name: TEXT,
  ...byLimitName({ usd: AMOUNT, count: BY_THE_MINUTE }),
  allowedModels: ALLOWED_MODELS,
  expiresAt: TIME,
  allowedAddresses: ADDRESSES,
  teamId: ID,
  memberId: ID,
  requiredTags: REQUIRED_TAGS,
  require: REQUIRE,
} as const;

/** The fields of a request that changes a key; null removes a value. */
export const KEY_CHANGE_FIELDS = {
  name: TEXT,
  ...byLimitName({
    usd: { ...AMOUNT, type: ['string', 'null'] },
    count: { ...BY_THE_MINUTE, type: ['integer', 'null'] },
  }),
  allowedModels: { ...ALLOWED_MODELS, type: ['array', 'null'] },
  expiresAt: { ...TIME, type: ['string', 'null'] },
  allowedAddresses: { ...ADDRESSES, type: ['array', 'null'] },
  teamId: { ...ID, type: ['string', 'null'] },
  memberId: { ...ID, type: ['string', 'null'] },
  requiredTags: { ...REQUIRED_TAGS, type: ['array', 'null'] },
  require: REQUIRE_CHANGE,
} as const;

/** The body of a request that rotates a key's secret. */
export const ROTATION = {
  type: 'object',
  additionalProperties: false,
  required: ['graceSeconds'],
  properties: {
    graceSeconds: {
      description: 'How long the previous secret keeps working; 0 ends it at once.',
      type: 'integer',
      minimum: 0,
      maximum: 90 * 86_400,
    },
  },
  example: { graceSeconds: 86_400 },
} as const;

/** Reads the limits of a key from a request body. @throws INVALID_FIELD */
function readLimits(body: Partial<ShownKeyLimits>): KeyLimitChanges {
  const read = KEY_LIMIT_ROWS.map(([key, { name }]) => {
    const { [name]: value } = body;
    return [key, typeof value === 'string' ? readAmount(name, value) : value];
  });
  return Object.fromEntries(read);
}

interface AccessFields {
  readonly expiresAt: string | null | undefined;
  readonly allowedAddresses: readonly string[] | null | undefined;
}

/** Reads the expiry and the allowed addresses of a key from a request body. @throws INVALID_FIELD */
function readAccess({ expiresAt, allowedAddresses }: AccessFields) {
  for (const [index, text] of (allowedAddresses ?? []).entries()) {
    if (readAddressRange(text) !== undefined) continue;
    throw invalidParam(`allowedAddresses[${index}]`, 'expected an address or a range such as 203.0.113.0/24');
  }
  return {
    expiresAt: typeof expiresAt === 'string' ? readComingTime('expiresAt', expiresAt) : expiresAt,
    allowedAddresses,
  };
}

interface KeyBody extends Partial<ShownKeyLimits>, Partial<AccessFields> {
  readonly requiredTags?: readonly string[] | null | undefined;
  readonly require?: string | null | undefined;
}

/** Reads the settings of a key from the body of a request that creates or changes it. @throws INVALID_FIELD */
export function readKeySettings<B extends KeyBody>(body: B) {
  const { expiresAt, allowedAddresses, requiredTags, require, ...others } = body;
  return {
    ...others,
    requiredTags: readRequiredTags(requiredTags),
    require: readRequire(require),
    ...readAccess({ expiresAt, allowedAddresses }),
    ...readLimits(body),
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
    teamId: key.teamId ?? null,
    memberId: key.memberId ?? null,
    requiredTags: key.requiredTags ?? null,
    require: key.require ?? null,
    createdAt: key.createdAt.toISOString(),
    expiresAt: key.expiresAt?.toISOString() ?? null,
    allowedAddresses: key.allowedAddresses ?? null,
    previousSecretUntil: key.previousSecretUntil?.toISOString() ?? null,
    revokedAt: key.revokedAt?.toISOString() ?? null,
  };
}

/** The schema of what `showKey` returns, for the OpenAPI document. */
export const KEY = {
  id: shape.uuid,
  accountId: shape.uuid,
  name: shape.text,
  prefix: shape.text,
  suffix: shape.text,
  status: oneOf('active', 'revoked'),
  ...byLimitName({ usd: orNull(shape.usd), count: orNull(shape.integer) }),
  spentUsd: orNull(shape.usd),
  heldUsd: orNull(shape.usd),
  allowedModels: orNull(shape.texts),
  debug: shape.yes,
  teamId: orNull(shape.uuid),
  memberId: orNull(shape.uuid),
  requiredTags: orNull(shape.texts),
  require: SHOWN_REQUIRE,
  createdAt: shape.time,
  expiresAt: orNull(shape.time),
  allowedAddresses: orNull(shape.texts),
  previousSecretUntil: {
    ...orNull(shape.time),
    description: 'When the previous secret expires or expired; null for a key that was never rotated.',
  },
  revokedAt: orNull(shape.time),
};
