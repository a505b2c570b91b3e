import { DURATION, parseDuration } from '../../../core/base/settings';

const duration = (description: string, byDefault: string) =>
  ({ ...DURATION, description, default: byDefault }) as const;

/** Durations and intervals: settings of the plugin. */
export const TIMINGS = {
  holdAhead: duration('How far ahead the account pays for an instance.', '10m'),
  renewBefore: duration('The hold is renewed when this much of it is left.', '3m'),
  endingReserve: duration('How long ending an instance may take; paid in addition to the time ahead.', '60s'),
  maxPeriod: duration('A billing period is settled after this long at the latest.', '60m'),
  observeMoving: duration('How often the state of an instance is read while it changes.', '2s'),
  observeSteady: duration('How often the state of an instance is read otherwise.', '60s'),
  silentAfter: duration('After this long and three tries without an answer its state is UNKNOWN.', '90s'),
  goneAfter: duration(
    'An instance counts as lost if it is missing twice, this far apart, without a request to end it.',
    '30s',
  ),
  lease: duration('How long the claim of a worker on a sandbox lasts before another worker takes over.', '60s'),
  orphansEvery: duration("How often the suppliers' lists are compared.", '60s'),
  orphanAfter: duration('An instance of ours that no sandbox knows is removed when it is older.', '120s'),
} as const;

/** The plugin's durations and intervals in milliseconds. */
export type Timings = { readonly [Name in keyof typeof TIMINGS as `${Name}Ms`]: number };

export function readTimings(settings: Readonly<Record<keyof typeof TIMINGS, string>>): Timings {
  return Object.fromEntries(
    Object.keys(TIMINGS).map((name) => [`${name}Ms`, parseDuration(settings[name as keyof typeof TIMINGS])]),
  ) as Timings;
}

const limit = (description: string, byDefault: number) =>
  ({ description, type: 'integer', minimum: 1, default: byDefault }) as const;

/** The limits of concurrent work inside sandboxes: settings of the plugin. */
export const SANDBOX_LIMITS = {
  commandsPerSandbox: limit('Commands of one sandbox that may run at once.', 32),
  commandsPerAccount: limit("Commands of all of an account's sandboxes that may run at once.", 64),
  followersPerSandbox: limit('Clients that one process lets follow the commands of one sandbox at once.', 50),
} as const;

export type Limits = { readonly [Name in keyof typeof SANDBOX_LIMITS]: number };
