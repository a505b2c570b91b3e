import { useState } from 'preact/hooks';
import type { Failure } from '../api';
import { Icon } from '../parts/icon';
import { Popover } from '../parts/popover';
import { Failed } from '../parts/states';
import { ThemeChoice } from '../parts/theme-choice';
import { toFailure } from '../resource';
import { showClock, showWhole } from '../times';
import { endSession, mayChange, session } from './session';

/** Who is signed in, how the page looks, and the way out. */
export function OperatorMenu() {
  const [failure, setFailure] = useState<Failure>();
  const state = session.value;
  if (state.is !== 'signed-in') return null;
  const { operator, expiresAt } = state.session;

  const leave = async () => {
    try {
      await endSession('session');
    } catch (error) {
      setFailure(toFailure(error));
    }
  };
  return (
    <div class="account">
      <Popover
        up
        look="account-button"
        label={
          <>
            <Icon name="user" />
            <span class="account-names">
              <span class="unseen">Operator </span>
              <span class="cut">{operator.name}</span>
              <span class="cut faint">{mayChange() ? operator.role : `${operator.role}: looks only`}</span>
            </span>
          </>
        }
      >
        {() => (
          <div class="account-sheet">
            <div class="account-who">
              <p class="cut">{operator.name}</p>
              <p class="faint small" title={showWhole(expiresAt)}>
                Role {operator.role} · signed in until {showClock(expiresAt)}
              </p>
            </div>
            <ThemeChoice />
            <ul class="menu">
              <li>
                <button type="button" onClick={leave}>
                  Sign out
                </button>
              </li>
            </ul>
            {failure !== undefined && <Failed failure={failure} />}
          </div>
        )}
      </Popover>
    </div>
  );
}
