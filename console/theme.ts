import { signal } from '@preact/signals';
import { recall, store } from './storage';

export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const NAME = 'tollgate-theme';

/** The theme that the user has chosen. `public/theme.js` applies it before the browser draws the page. */
export const theme = signal<Theme>(THEMES.find((each) => each === recall(NAME)) ?? 'system');

export function chooseTheme(chosen: Theme): void {
  theme.value = chosen;
  store(NAME, chosen === 'system' ? undefined : chosen);
  if (chosen === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = chosen;
}
