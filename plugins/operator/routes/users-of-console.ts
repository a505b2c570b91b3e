import { type Changer, ownOnly } from '../../../core/sign-in/member-roles';
import type { Session } from '../../../core/sign-in/sessions';

/** The user who asks, where the console has a route of operators too. */

/** Returns who changes something: an operator, or a user with its role. */
export function changerOf(asked: {
  readonly operator: { readonly actor: string };
  readonly session?: Session | undefined;
}): Changer {
  const { operator, session } = asked;
  return { actor: operator.actor, userId: session?.user.id, role: session?.user.role };
}

/** Returns the member to whose own things a user of the console is restricted; undefined for operators and for users who see all of the account. */
export function restrictionOf(session: Session | undefined): string | undefined {
  return session && ownOnly(session.user);
}
