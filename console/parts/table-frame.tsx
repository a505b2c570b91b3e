import type { ComponentChildren } from 'preact';

interface Props {
  readonly label: string;
  /** What is shown is of before, and what is asked for is on its way. */
  readonly isStale?: boolean;
  readonly children: ComponentChildren;
}

/** Tables wider than the screen scroll in here, by the keyboard too; the page does not. */
export function TableFrame({ label, isStale = false, children }: Props) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a section would want a heading
    <div
      class={isStale ? 'table-frame is-stale' : 'table-frame'}
      role="region"
      aria-label={label}
      aria-busy={isStale}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
      tabIndex={0}
    >
      {children}
    </div>
  );
}
