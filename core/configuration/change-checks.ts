import type { Configuration } from './configuration';

/**
 * What speaks against putting one configuration in the place of another, in sentences for the operator: such a revision is applied
 * only when it is forced. Plugins add theirs to `gateway.changeChecks`.
 */
export type ChangeCheck = (before: Configuration, next: Configuration) => Promise<readonly string[]>;
