import { invalidParam } from '../base/errors';
import { formatUsd, parseUsd } from '../base/money';
import { GATEWAY_TAGS, isGatewayTag, MAX_TAGS, TAG_NAME } from '../calls/tags';
import { readGivenDemands } from '../catalog/demands';
import { readFilter, readTime } from '../http/query';
import { orNull, shape } from '../http/shape';

/** A text that a person enters. It must not contain control characters or characters that Postgres cannot store. */
export const TEXT = {
  type: 'string',
  minLength: 1,
  maxLength: 200,
  pattern: '^[^\\p{Cc}\\p{Cs}]+$',
  'x-expected': 'text without control characters',
} as const;

/** The schema of a body without fields, for requests that need none. */
export const NOTHING = { type: 'object', additionalProperties: false, properties: {} } as const;

/** An amount of USD as decimal text. JSON numbers are refused, because they are binary fractions. */
export const AMOUNT = { type: 'string', maxLength: 40 } as const;

/** The id of something in the body of a request. */
export const ID = {
  type: 'string',
  maxLength: 36,
  pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$',
  'x-expected': 'an id such as 019a9d5e-3c5c-7a52-8f7e-0d4f6a1b2c3d',
} as const;

/** A password of at least 12 characters. Nothing else is required, because the user may choose the characters. */
export const PASSWORD = { ...TEXT, minLength: 12 } as const;

export const ALLOWED_MODELS = { type: 'array', minItems: 1, maxItems: 1_000, uniqueItems: true, items: TEXT } as const;

/** Names of tags that every call must have: those that the caller gives, and those that the gateway itself sets. */
export const REQUIRED_TAGS = {
  description: 'Tags that every call must have: at most 4 of `X-SVC-Tags`, and `session`, `agent`, `end_user`.',
  type: 'array',
  minItems: 1,
  maxItems: MAX_TAGS + GATEWAY_TAGS.length,
  uniqueItems: true,
  items: { type: 'string', pattern: TAG_NAME, 'x-expected': 'a name of a tag such as customer' },
  example: ['customer'],
} as const;

/** Reads the names of required tags. @throws INVALID_FIELD if no call could have all of them */
export function readRequiredTags<T extends readonly string[] | null | undefined>(names: T): T {
  if ((names ?? []).filter((name) => !isGatewayTag(name)).length <= MAX_TAGS) return names;
  const problem = `expected at most ${MAX_TAGS} names besides ${GATEWAY_TAGS.join(', ')}, because a call has no more`;
  throw invalidParam('requiredTags', problem);
}

/** Reads an amount of USD into E8. @throws GatewayError INVALID_FIELD that names the field */
export function readAmount(field: string, text: string): bigint {
  return readFilter(field, text, parseUsd);
}

/** Formats an amount in USD; null if it is unknown, never 0. */
export function showUsd(amountE8: bigint | undefined): string | null {
  return amountE8 === undefined ? null : formatUsd(amountE8);
}

/** A time with its UTC offset, in the format that `readTime` reads. */
export const TIME = { type: 'string', maxLength: 40, 'x-expected': 'an RFC 3339 time with an offset' } as const;

/** Reads a time in the future. @throws GatewayError INVALID_FIELD that names the field */
export function readComingTime(field: string, text: string): Date {
  const time = readFilter(field, text, readTime);
  if (time.getTime() <= Date.now()) throw invalidParam(field, 'expected a time in the future');
  return time;
}

/** The demands of a key, a team or an account; null removes them. */
export const REQUIRE = { type: 'string', example: 'region=eu; retention=none; trains=no' } as const;
export const REQUIRE_CHANGE = { ...REQUIRE, type: ['string', 'null'] } as const;

/** The demands of a key, a team or an account in answers. */
export const SHOWN_REQUIRE = {
  ...orNull(shape.text),
  description: 'What every call demands of upstreams, in the grammar of `X-SVC-Require`.',
};

/** Reads demands before they are set. @throws INVALID_FIELD */
export function readRequire<T extends string | null | undefined>(text: T): T {
  if (typeof text === 'string') readFilter('require', text, readGivenDemands);
  return text;
}
