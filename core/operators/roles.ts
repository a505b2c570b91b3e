import { oneOf } from '../http/shape';

/** The permissions that a token's role grants. Each role includes the permissions of the roles before it. */
export const ROLES = {
  metrics: 'reads the metrics',
  read: 'reads everything but secrets',
  write: 'changes everything but tokens',
  owner: "makes and revokes tokens, and reads Express Gateway's own admin API",
} as const;

/** The role of an operator's token. */
export type OperatorRole = keyof typeof ROLES;

/** The names of the roles, from the fewest permissions to the most. */
export const ROLE_NAMES = Object.keys(ROLES) as OperatorRole[];

/** The role that an operator token needs for a route of the admin listener that declares no role. */
export const USUAL_ROLE: OperatorRole = 'owner';

/** The schema of a role in the OpenAPI document. */
export const ROLE = oneOf(...ROLE_NAMES);

/** Returns whether the role `role` includes the permissions of the role `needed`. */
export function mayDo(role: OperatorRole, needed: OperatorRole): boolean {
  return ROLE_NAMES.indexOf(role) >= ROLE_NAMES.indexOf(needed);
}
