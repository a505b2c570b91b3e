import type { Configured } from './gateway';

/** Sets the action of a policy in one pipeline, or in all pipelines that have the policy. */
export function setPolicy(config: Configured, policy: string, action: object, pipeline?: string): void {
  const pipelines = config['pipelines'] as Record<string, { policies: Record<string, unknown>[] }>;
  for (const [name, { policies }] of Object.entries(pipelines)) {
    if (pipeline !== undefined && pipeline !== name) continue;
    for (const entry of policies) if (policy in entry) entry[policy] = [{ action }];
  }
}
