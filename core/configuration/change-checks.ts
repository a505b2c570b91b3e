import type { Configuration } from './configuration';

/**
 * Returns objections to replacing one configuration by another, as sentences for the operator. A revision with objections is
 * applied only when forced. Plugins add their checks to `gateway.changeChecks`.
 */
export type ChangeCheck = (before: Configuration, next: Configuration) => Promise<readonly string[]>;
