import type { MemberRole } from './shapes';

/** What belongs to an account, by its name in the console's API. */
export type Noun = 'budgets' | 'events' | 'invitations' | 'keys' | 'members' | 'teams' | 'webhooks';

/** Where a page finds what belongs to an account, and what its user may do there. The gateway checks the role again for every change. */
export interface Access {
  /** The API path of the account itself. */
  readonly account: string;
  /** The API path of the models that a key can be limited to. */
  readonly models: string;
  /** Returns the API path of a list. */
  readonly list: (noun: Noun) => string;
  /** Returns the API path of one item of a list. */
  readonly one: (noun: Noun, id: string) => string;
  /** An operator whose token may change things works as an owner, another one as a viewer. */
  readonly role: MemberRole;
  /** The id of the signed-in member; undefined for an operator. */
  readonly memberId: string | undefined;
}

/** The properties of a part of a page that works with an account. */
export interface WithAccess {
  readonly access: Access;
}

/** Returns whether a role manages an account: its members, teams, budgets and webhooks, and every key. */
export function mayManage({ role }: Pick<Access, 'role'>): boolean {
  return role === 'owner' || role === 'admin';
}
