import { StartFailure } from './start-failure';

const ROLES = ['all', 'gateway', 'worker'] as const;

/** The role of a process. `all`: everything; `gateway`: serves clients and leaves background work to others; `worker`: background work only. */
export type Role = (typeof ROLES)[number];

/** Reads the role from the environment. @throws StartFailure */
export function readRole({ ROLE: given = 'all' }: NodeJS.ProcessEnv): Role {
  const role = ROLES.find((each) => each === given);
  if (role !== undefined) return role;
  throw new StartFailure(`ROLE is "${given}", but it must be one of ${ROLES.join(', ')}.`);
}
