/** Environment variables with the gateway's own secrets. A configuration that could read them could send them to an upstream. */
const OWN_SECRETS: ReadonlySet<string> = new Set([
  'ADMIN_TOKEN',
  'TOLLGATE_TOKEN',
  'DATABASE_URL',
  'REDIS_URL',
  'PGPASSWORD',
]);

export function withoutOwnSecrets(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !OWN_SECRETS.has(name)));
}

/** The environment variables that a configuration may name: as a credential, and as `${NAME}`. */
export interface Nameable {
  /** Returns why this variable may not hold a credential; undefined if it may. */
  credential(name: string): string | undefined;
  /** Returns why the configuration's text may not contain this variable as `${NAME}`; undefined if it may. */
  variable(name: string): string | undefined;
}

/** The variables that a configuration file of this machine may name: all except the gateway's own secrets. */
export const BY_FILE: Nameable = { credential: reserved, variable: reserved };

/** The variables that this node's own gateway.config.yml names. */
export interface OwnNames {
  readonly credentials: ReadonlySet<string>;
  readonly variables: ReadonlySet<string>;
}

/**
 * Returns the variables that an applied revision may name: those that the node's own file uses for the same purpose, and those in
 * CREDENTIAL_ENV and CONFIG_ENV. An operator's token may apply a revision, but must not expose the rest of the environment.
 */
export function byRevision({ credentials, variables }: OwnNames, env: NodeJS.ProcessEnv): Nameable {
  const listed = (list: string) => new Set((env[list] ?? '').split(/[\s,]+/));
  const [ofCredentials, ofConfig] = [listed('CREDENTIAL_ENV'), listed('CONFIG_ENV')];
  const refusal = (name: string, list: string) =>
    `${name} is named neither in this node's own gateway.config.yml nor in ${list}; add it to ${list} and restart the node`;
  return {
    credential: (name) =>
      reserved(name) ??
      (credentials.has(name) || ofCredentials.has(name) ? undefined : refusal(name, 'CREDENTIAL_ENV')),
    variable: (name) =>
      reserved(name) ?? (variables.has(name) || ofConfig.has(name) ? undefined : refusal(name, 'CONFIG_ENV')),
  };
}

/** Returns the environment variables from which a parsed configuration reads credentials: every text member `env`. */
export function credentialNames(value: unknown, found: Set<string> = new Set()): ReadonlySet<string> {
  if (typeof value !== 'object' || value === null) return found;
  for (const [key, each] of Object.entries(value)) {
    if (key === 'env' && typeof each === 'string') found.add(each);
    else credentialNames(each, found);
  }
  return found;
}

function reserved(name: string): string | undefined {
  if (!OWN_SECRETS.has(name)) return undefined;
  return `${name} is reserved for a secret of the gateway itself; use another environment variable`;
}
