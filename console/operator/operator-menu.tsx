import { SessionMenu } from '../parts/session-menu';
import { showClock, showWhole } from '../times';
import { endSession, mayChange } from './session';
import type { Session } from './shapes';

export function OperatorMenu({ session: { operator, expiresAt } }: { readonly session: Session }) {
  return (
    <SessionMenu
      label="Operator"
      name={operator.name}
      more={mayChange() ? operator.role : `${operator.role}: read only`}
      head={
        <>
          <p class="cut">{operator.name}</p>
          <p class="faint small" title={showWhole(expiresAt)}>
            Role {operator.role} · signed in until {showClock(expiresAt)}
          </p>
        </>
      }
      items={[{ text: 'Sign out', run: () => endSession('session') }]}
    />
  );
}
