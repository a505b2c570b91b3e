import { Option } from 'commander';
import type { ShownKeyLimits } from '../core/ledger/limit-fields';
import { UsageError } from './failure';

/** The text with which help and errors describe a valid expiry. */
export const EXPIRY = 'a time from now such as 90d or 12h, a time such as 2026-12-31, or "never"';

/** The options for the limits of a key except `balanceLimit`. "none" removes a limit. */
const LIMITS: Readonly<Record<Exclude<keyof ShownKeyLimits, 'balanceLimit'>, Option>> = {
  dailyLimit: new Option('--daily <usd>', 'the most it may spend in a day, UTC'),
  monthlyLimit: new Option('--monthly <usd>', 'the most it may spend in a month, UTC'),
  callsPerMinute: new Option('--calls-per-minute <count>', 'the most calls it may make in a minute'),
  tokensPerMinute: new Option('--tokens-per-minute <count>', 'the most tokens it may ask for in a minute'),
};

/** The options for the team and the member whose budgets count what a key spends. "none" removes one. */
const SCOPES: readonly Option[] = [
  new Option('--team <team>', 'its team: the budgets of the team limit it, too'),
  new Option('--member <member>', 'its member, a user of the account: the budgets of the member limit it, too'),
];

/** The option for the tags that every call must have. "none" removes them. */
export const REQUIRE_TAGS = new Option(
  '--require-tags <names...>',
  'refuse calls without these tags, such as customer (X-SVC-Tags), end_user, session or agent',
);

/** The option for what every call demands of upstreams. "none" removes it. */
export const DEMANDS = new Option(
  '--require <demands>',
  'what every call demands of upstreams, such as "region=eu; retention=none; trains=no"',
);

/** Returns the names in the option --require-tags; null for "none". */
export function requiredTags(names: unknown): unknown {
  return Array.isArray(names) && names.length === 1 ? (names[0] === 'none' ? null : names) : names;
}

/** The options of a new key and of a changed one, in the order in which help shows them. */
const OPTIONS: readonly Option[] = [
  new Option('--limit <usd>', 'the spending limit of the key'),
  new Option('--name <name>', 'its new name'),
  new Option('--models <names...>', 'the only models this key may call'),
  new Option('--all-models', 'allow every model'),
  new Option('--markup <markup>', 'its own markup: a factor such as 1.25, or a list under customerPrices'),
  new Option('--debug', 'allow it to request the reasons of routing decisions'),
  new Option('--no-debug', 'do not allow that'),
  new Option('--expires <when>', EXPIRY),
  new Option('--addresses <ranges...>', 'allow it only from these addresses, such as 203.0.113.0/24 or 2001:db8::/32'),
  new Option('--all-addresses', 'allow it from every address'),
  ...SCOPES,
  REQUIRE_TAGS,
  DEMANDS,
  ...Object.values(LIMITS),
];

const OF_CHANGES: readonly unknown[] = ['--name', '--all-models', '--no-debug', '--all-addresses'];

export const NEW_KEY = OPTIONS.filter(({ long }) => !OF_CHANGES.includes(long));

export const KEY_CHANGES = OPTIONS.filter(({ long }) => long !== '--limit');

interface KeyOptions extends Readonly<Record<string, unknown>> {
  readonly name?: string;
  readonly limit?: string;
  readonly models?: readonly string[];
  readonly allModels?: true;
  readonly markup?: string;
  readonly debug?: boolean;
  readonly expires?: string;
  readonly addresses?: readonly string[];
  readonly allAddresses?: true;
  readonly team?: string;
  readonly member?: string;
  readonly requireTags?: readonly string[];
  readonly require?: string;
}

/** Returns the request body that creates a key. Without the option --expires the key never expires. */
export function newKey(options: KeyOptions, name: string | undefined): object {
  const { limit, models, markup, debug, expires = 'never', addresses, team, member, requireTags, require } = options;
  const expiresAt = toExpiry(expires) ?? undefined;
  const fields = { name, balanceLimit: limit, allowedModels: models, markup, debug, expiresAt };
  const owners = { teamId: team, memberId: member, requiredTags: requireTags, require };
  return { ...fields, allowedAddresses: addresses, ...owners, ...limitFields(options) };
}

/** Returns the request body that changes a key. @throws UsageError if no option changes anything */
export function keyChanges(options: KeyOptions): object {
  const { name, models, allModels, markup, debug, expires, addresses, allAddresses, team, member } = options;
  if (models !== undefined && allModels)
    throw new UsageError('--models and --all-models exclude each other; use only one.');
  if (addresses !== undefined && allAddresses)
    throw new UsageError('--addresses and --all-addresses exclude each other; use only one.');
  return someOf(
    {
      name,
      allowedModels: allModels ? null : models,
      markup: orNull(markup),
      debug,
      expiresAt: expires === undefined ? undefined : toExpiry(expires),
      allowedAddresses: allAddresses ? null : addresses,
      teamId: orNull(team),
      memberId: orNull(member),
      requiredTags: requiredTags(options.requireTags),
      require: orNull(options.require),
      ...limitFields(options),
    },
    'Give --name, --models, --all-models, --markup, --debug, --no-debug, --expires, --addresses, --all-addresses, --team, --member, --require-tags, --require or a limit.',
  );
}

/** Returns null for the text "none", which removes a value, and every other text unchanged. */
export const orNull = (text: unknown) => (text === 'none' ? null : text);

/** Returns the request body unchanged. @throws UsageError with the text `missing` if the body has no members */
export function someOf(body: object, missing: string): object {
  if (Object.values(body).every((value) => value === undefined)) throw new UsageError(missing);
  return body;
}

function limitFields(given: Readonly<Record<string, unknown>>): object {
  const wanted = Object.entries(LIMITS).flatMap(([name, option]) => {
    const text = given[option.attributeName()];
    return typeof text === 'string' ? [[name, readLimit(option, text)]] : [];
  });
  return Object.fromEntries(wanted);
}

function readLimit({ long, flags }: Option, text: string): string | number | null {
  if (text === 'none') return null;
  if (!flags.endsWith('<count>')) return text;
  if (!/^[1-9]\d*$/.test(text)) throw new UsageError(`${long}: expected a whole number of 1 or more, or "none".`);
  return Number(text);
}

const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;

/** Reads how long a replaced secret stays valid, and returns seconds. */
export function toSeconds(text: string): number {
  if (text === '0') return 0;
  const [, count, unit] = /^(\d{1,8})([smhd])$/.exec(text) ?? [];
  if (count === undefined) throw new UsageError('--grace: expected a duration such as 24h or 7d, or 0.');
  return Number(count) * SECONDS[unit as keyof typeof SECONDS];
}

export const FROM = new Option(
  '--from <time>',
  'only from this time on, such as 2026-11-20 (UTC) or 2026-11-20T08:00:00+01:00',
);
export const TO = new Option('--to <time>', 'only before this time');

/** Returns the time in an option as text. A date without a time means 00:00 UTC of that day. */
export function toTime(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined;
  return /^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text;
}

const UNITS = { h: 3_600_000, d: 86_400_000 } as const;

/** Reads an expiry: a time, a duration from now such as 90d or 12h, or "never". Returns null for "never". */
export function toExpiry(text: string): string | null {
  if (text === 'never') return null;
  const [, count, unit] = /^([1-9]\d{0,5})([dh])$/.exec(text) ?? [];
  if (count !== undefined) return new Date(Date.now() + Number(count) * UNITS[unit === 'h' ? 'h' : 'd']).toISOString();
  if (!/^\d{4}-/.test(text)) throw new UsageError(`--expires: expected ${EXPIRY}.`);
  return toTime(text) ?? null;
}
