import { StartFailure } from './start-failure';

const ROLES = ['all', 'gateway', 'worker'] as const;

/** What a process does: all of it; serve, and leave to others what goes on by itself; or only that, and serve nobody. */
export type Role = (typeof ROLES)[number];

/** @throws StartFailure */
export function readRole({ ROLE: given = 'all' }: NodeJS.ProcessEnv): Role {
  const role = ROLES.find((each) => each === given);
  if (role !== undefined) return role;
  throw new StartFailure(`ROLE is "${given}", but it must be one of ${ROLES.join(', ')}.`);
}
