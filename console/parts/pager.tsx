import { useState } from 'preact/hooks';
import { Icon } from './icon';

/** The position in a list that is read page by page, newest first. */
export interface Pages {
  readonly cursor: string | undefined;
  /** The number of the page, from 1. */
  readonly number: number;
  readonly older: (cursor: string) => void;
  readonly newer: () => void;
}

/** Keeps the position; another filter begins at the first page again. */
export function usePages(filter: string): Pages {
  const [state, setState] = useState<{ readonly filter: string; readonly cursors: readonly string[] }>({
    filter,
    cursors: [],
  });
  const cursors = state.filter === filter ? state.cursors : [];
  return {
    cursor: cursors.at(-1),
    number: cursors.length + 1,
    older: (cursor) => setState({ filter, cursors: [...cursors, cursor] }),
    newer: () => setState({ filter, cursors: cursors.slice(0, -1) }),
  };
}

interface Props {
  readonly page: number;
  readonly onNewer: (() => void) | undefined;
  readonly onOlder: (() => void) | undefined;
  readonly children?: string;
}

export function Pager({ page, onNewer, onOlder, children }: Props) {
  if (page === 1 && onOlder === undefined) return null;
  return (
    <nav class="pager" aria-label="Pages of the list">
      <span class="quiet small figure">{children ?? `Page ${page}`}</span>
      <button type="button" class="button" disabled={onNewer === undefined} onClick={onNewer}>
        <Icon name="left" /> Newer
      </button>
      <button type="button" class="button" disabled={onOlder === undefined} onClick={onOlder}>
        Older <Icon name="right" />
      </button>
    </nav>
  );
}
