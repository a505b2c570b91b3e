/** The settings that decide which of an upstream's headers a client gets. */
export interface HeaderRules {
  readonly forwardHeaderPrefixes: readonly string[];
  /** Whether clients may see headers about the platform's own account at the upstream. */
  readonly exposeAccountHeaders: boolean;
}

/** Headers that clients use or log. */
const PASSED: ReadonlySet<string> = new Set([
  'content-type',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  'openai-processing-ms',
  'openai-version',
  'openai-model',
]);

/** Headers that only the gateway writes, whatever prefixes are configured. */
const OURS = /^x-(?:svc|routing|ai)-/;
const REQUEST_ID = /^(?:x-)?request-id$/;
const OF_THE_ACCOUNT = /-ratelimit-|organization|project/;

/** Returns the name under which a client gets an upstream's header; undefined when the header is withheld. */
export function passedAs(name: string, status: number, rules: HeaderRules): string | undefined {
  if (PASSED.has(name)) return name;
  if (name === 'location') return status >= 300 && status < 400 ? name : undefined;
  if (REQUEST_ID.test(name)) return rules.exposeAccountHeaders ? 'x-upstream-request-id' : undefined;
  if (OF_THE_ACCOUNT.test(name)) return rules.exposeAccountHeaders ? name : undefined;
  if (OURS.test(name)) return undefined;
  return rules.forwardHeaderPrefixes.some((prefix) => name.startsWith(prefix)) ? name : undefined;
}
