import { oneOf } from '../http/shape';

/** What a token lets an operator do. Each role may also do what the roles before it may. */
export const ROLES = {
  metrics: 'reads the metrics',
  read: 'reads everything but secrets',
  write: 'changes everything but tokens',
  owner: "makes and revokes tokens, and reads Express Gateway's own admin API",
} as const;

/** The role of an operator's token. */
export type OperatorRole = keyof typeof ROLES;

/** The names of the roles, from the one that may do least. */
export const ROLE_NAMES = Object.keys(ROLES) as OperatorRole[];

/** The role that a route of the admin listener needs if it names none. */
export const USUAL_ROLE: OperatorRole = 'owner';

/** The schema of a role in the OpenAPI document. */
export const ROLE = oneOf(...ROLE_NAMES);

/** Returns whether an operator of `role` may do what needs the role `needed`. */
export function mayDo(role: OperatorRole, needed: OperatorRole): boolean {
  return ROLE_NAMES.indexOf(role) >= ROLE_NAMES.indexOf(needed);
}
