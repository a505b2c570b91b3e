import { chooseTheme, THEMES, theme } from '../theme';
import { Segmented } from './segmented';

const THEME_NAMES = { system: 'System', light: 'Light', dark: 'Dark' } as const;

export function ThemeChoice() {
  return (
    <Segmented
      label="Theme"
      value={theme.value}
      options={THEMES.map((value) => ({ value, text: THEME_NAMES[value] }))}
      onChange={chooseTheme}
    />
  );
}
