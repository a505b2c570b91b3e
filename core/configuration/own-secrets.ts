/** Environment variables with the gateway's own secrets. A configuration that could read them could send them to an upstream. */
const OWN_SECRETS: ReadonlySet<string> = new Set([
  'ADMIN_TOKEN',
  'TOLLGATE_TOKEN',
  'DATABASE_URL',
  'REDIS_URL',
  'PGPASSWORD',
]);

export function isOwnSecret(name: string): boolean {
  return OWN_SECRETS.has(name);
}

export function withoutOwnSecrets(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !isOwnSecret(name)));
}
