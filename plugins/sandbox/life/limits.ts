const limit = (description: string, otherwise: number) =>
  ({ description, type: 'integer', minimum: 1, default: otherwise }) as const;

/** The limits of concurrent work inside sandboxes: settings of the plugin. */
export const LIMITS = {
  commandsPerSandbox: limit('Commands of one sandbox that may run at once.', 32),
  commandsPerAccount: limit("Commands of all of an account's sandboxes that may run at once.", 64),
  followersPerSandbox: limit('Clients that one process lets follow the commands of one sandbox at once.', 50),
} as const;

export type Limits = { readonly [Name in keyof typeof LIMITS]: number };

/** The default limits. */
export const DEFAULT_LIMITS: Limits = {
  commandsPerSandbox: LIMITS.commandsPerSandbox.default,
  commandsPerAccount: LIMITS.commandsPerAccount.default,
  followersPerSandbox: LIMITS.followersPerSandbox.default,
};
