import { duration, integer } from '../../../core/base/setting-schemas';
import { parseDuration } from '../../../core/base/settings';

/** Durations and intervals: settings of the plugin. */
export const TIMINGS = {
  holdAhead: duration('How far ahead the account pays for an instance.', { default: '10m' }),
  renewBefore: duration('The hold is renewed when this much of it is left.', { default: '3m' }),
  endingReserve: duration('How long ending an instance may take; paid in addition to the time ahead.', {
    default: '60s',
  }),
  maxPeriod: duration('A billing period is settled after this long at the latest.', { default: '60m' }),
  observeMoving: duration('How often the state of an instance is read while it changes.', { default: '2s' }),
  observeSteady: duration('How often the state of an instance is read otherwise.', { default: '60s' }),
  silentAfter: duration('After this long and three tries without an answer its state is UNKNOWN.', { default: '90s' }),
  goneAfter: duration(
    'An instance counts as lost if it is missing twice, this far apart, without a request to end it.',
    { default: '30s' },
  ),
  lease: duration('How long the claim of a worker on a sandbox lasts before another worker takes over.', {
    default: '60s',
  }),
  orphansEvery: duration("How often the suppliers' lists are compared.", { default: '60s' }),
  orphanAfter: duration('An instance of ours that no sandbox knows is removed when it is older.', { default: '120s' }),
} as const;

/** The plugin's durations and intervals in milliseconds. */
export type Timings = { readonly [Name in keyof typeof TIMINGS as `${Name}Ms`]: number };

export function readTimings(settings: Readonly<Record<keyof typeof TIMINGS, string>>): Timings {
  return Object.fromEntries(
    Object.keys(TIMINGS).map((name) => [`${name}Ms`, parseDuration(settings[name as keyof typeof TIMINGS])]),
  ) as Timings;
}

/** The limits of concurrent work inside sandboxes: settings of the plugin. */
export const SANDBOX_LIMITS = {
  commandsPerSandbox: integer('Commands of one sandbox that may run at once.', { minimum: 1, default: 32 }),
  commandsPerAccount: integer("Commands of all of an account's sandboxes that may run at once.", {
    minimum: 1,
    default: 64,
  }),
  followersPerSandbox: integer('Clients that one process lets follow the commands of one sandbox at once.', {
    minimum: 1,
    default: 50,
  }),
} as const;

export type Limits = { readonly [Name in keyof typeof SANDBOX_LIMITS]: number };
