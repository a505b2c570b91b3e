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

/** From the one that may do least. */
export const ROLE_NAMES = Object.keys(ROLES) as OperatorRole[];

/** What a route of the admin listener needs that names no role. */
export const USUAL_ROLE: OperatorRole = 'owner';

/** A role, as the OpenAPI document says it. */
export const ROLE = oneOf(...ROLE_NAMES);

/** Whether a role may do what is declared for another. */
export function mayDo(role: OperatorRole, needed: OperatorRole): boolean {
  return ROLE_NAMES.indexOf(role) >= ROLE_NAMES.indexOf(needed);
}
