import type { ComponentChildren } from 'preact';

export type Tone = 'good' | 'warn' | 'bad' | 'accent' | 'plain';

/** A state in a word: the colour only repeats what it says. */
export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) {
  return (
    <span class={`badge ${tone}`}>
      <span class="dot" aria-hidden="true" />
      {children}
    </span>
  );
}
