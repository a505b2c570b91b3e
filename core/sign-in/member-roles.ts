import { fail } from '../base/errors';
import { oneOf } from '../http/shape';

/** The roles of the users of an account, and what each may do in the console. */
export const MEMBER_ROLES = {
  owner: 'does everything',
  admin: 'changes members but not owners, teams, API keys and budgets',
  member: 'makes and changes its own API keys, and sees only these and what they used',
  viewer: 'sees everything and changes nothing',
} as const;

export type MemberRole = keyof typeof MEMBER_ROLES;

export const MEMBER_ROLE_NAMES = Object.keys(MEMBER_ROLES) as MemberRole[];

/** The schema of a role in answers. */
export const MEMBER_ROLE = oneOf(...MEMBER_ROLE_NAMES);

/** Every role. A route that all may ask shows a `member` only its own things. */
export const EVERYONE: readonly MemberRole[] = MEMBER_ROLE_NAMES;

/** The roles that may see the things of other members. */
export const OVERSEERS: readonly MemberRole[] = ['owner', 'admin', 'viewer'];

/** The roles that may make and change API keys; a `member` only its own. */
export const KEY_HOLDERS: readonly MemberRole[] = ['owner', 'admin', 'member'];

/** The roles that may change members, teams, budgets, and the keys of others. */
export const MANAGERS: readonly MemberRole[] = ['owner', 'admin'];

/** A user who asks the console for something. */
interface Asker {
  readonly id: string;
  readonly role: MemberRole;
}

/** Returns the id of the member to whose own things a user is restricted; undefined if the user sees those of the whole account. */
export function ownOnly({ id, role }: Asker): string | undefined {
  return OVERSEERS.includes(role) ? undefined : id;
}

/** Checks that a user's role is one of those that a route declares. @throws FORBIDDEN */
export function requireRole({ role }: Pick<Asker, 'role'>, roles: readonly MemberRole[]): void {
  if (roles.includes(role)) return;
  const message = `Your role \`${role}\` does not allow this; ${roles.map((each) => `\`${each}\``).join(', ')} may do it.`;
  throw fail('FORBIDDEN', { message });
}

/** Who changes the users of an account. An operator, who may do everything, has neither id nor role. */
export interface Changer {
  readonly actor: string;
  readonly userId?: string | undefined;
  readonly role?: MemberRole | undefined;
}

/** Checks that only an owner, or an operator, makes, changes and removes owners. @throws FORBIDDEN */
export function requireOwnerFor({ role = 'owner' }: Pick<Changer, 'role'>, ...touched: readonly MemberRole[]): void {
  if (role === 'owner' || !touched.includes('owner')) return;
  throw fail('FORBIDDEN', { message: 'Only an owner makes, changes and removes owners.' });
}
