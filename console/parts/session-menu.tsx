import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Failure } from '../api';
import { toFailure } from '../resource';
import { chooseTheme, THEMES, theme } from '../theme';
import { Icon } from './icon';
import { Popover } from './popover';
import { Failed } from './states';
import { Segmented } from './toolbar';

const THEME_NAMES = { system: 'System', light: 'Light', dark: 'Dark' } as const;

interface MenuItem {
  readonly text: string;
  readonly run: () => Promise<void> | void;
}

interface Props {
  /** The accessible name of the menu's button. */
  readonly label: string;
  readonly name: string;
  readonly more: string;
  readonly head: ComponentChildren;
  readonly items: readonly MenuItem[];
}

/** The menu of the signed-in user: the theme, and actions such as signing out. */
export function SessionMenu({ label, name, more, head, items }: Props) {
  const [failure, setFailure] = useState<Failure>();
  const run = async (item: MenuItem, close: () => void) => {
    try {
      await item.run();
      close();
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
              <span class="unseen">{label} </span>
              <span class="cut">{name}</span>
              <span class="cut faint">{more}</span>
            </span>
          </>
        }
      >
        {(close) => (
          <div class="account-sheet stack">
            <div class="account-who small">{head}</div>
            <Segmented
              label="Theme"
              value={theme.value}
              options={THEMES.map((value) => ({ value, text: THEME_NAMES[value] }))}
              onChange={chooseTheme}
            />
            <ul class="menu">
              {items.map((item) => (
                <li key={item.text}>
                  <button type="button" onClick={() => run(item, close)}>
                    {item.text}
                  </button>
                </li>
              ))}
            </ul>
            {failure !== undefined && <Failed failure={failure} />}
          </div>
        )}
      </Popover>
    </div>
  );
}
