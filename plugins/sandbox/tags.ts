import type { Tags } from '../../core/supplier';

/** Every instance of this installation carries it; instances of others are never touched. */
export function environmentTags(environment: string): Tags {
  return { 'tollgate-environment': environment };
}

export const SANDBOX_TAG = 'tollgate-sandbox';

export function instanceTags(environment: string, sandboxId: string): Tags {
  return { ...environmentTags(environment), [SANDBOX_TAG]: sandboxId };
}

/** The same for ever: creating under it again finds what is there. */
export function instanceName(sandboxId: string): string {
  return `tg-${sandboxId}-1`;
}
