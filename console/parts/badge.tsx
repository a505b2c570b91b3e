import type { ComponentChildren } from 'preact';

export type Tone = 'good' | 'warn' | 'bad' | 'accent' | 'plain';

/** A state in one word; the colour only repeats it. */
export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) {
  return (
    <span class={`badge ${tone}`}>
      <span class="dot" aria-hidden="true" />
      {children}
    </span>
  );
}
