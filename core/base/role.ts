import { StartFailure } from './start-failure';

const ROLES = ['all', 'gateway', 'worker'] as const;

/** The role of a process. `all` does everything; `gateway` serves clients and does no background work; `worker` does only background work. */
export type Role = (typeof ROLES)[number];

/** Reads the role from the environment variable `ROLE`. @throws StartFailure when the role is unknown */
export function readRole({ ROLE: given = 'all' }: NodeJS.ProcessEnv): Role {
  const role = ROLES.find((each) => each === given);
  if (role !== undefined) return role;
  throw new StartFailure(`ROLE is "${given}", but it must be one of ${ROLES.join(', ')}.`);
}
