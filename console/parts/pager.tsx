import { useState } from 'preact/hooks';
import { Button } from './button';
import { Icon } from './icon';

interface PagerProps {
  readonly page: number;
  readonly onNewer: (() => void) | undefined;
  readonly onOlder: (() => void) | undefined;
  readonly children?: string;
}

/** Keeps the current page of a paginated list, newest first. Returns to the first page when the path changes. */
export function usePages(path: string) {
  const [state, setState] = useState<{ readonly path: string; readonly cursors: readonly string[] }>({
    path,
    cursors: [],
  });
  const cursors = state.path === path ? state.cursors : [];
  const cursor = cursors.at(-1);
  const turn = (to: readonly string[]) => setState({ path, cursors: to });
  const pagerOf = (list: { readonly nextCursor: string | null } | undefined): PagerProps => {
    const next = list?.nextCursor ?? undefined;
    return {
      page: cursors.length + 1,
      onNewer: cursors.length === 0 ? undefined : () => turn(cursors.slice(0, -1)),
      onOlder: next === undefined ? undefined : () => turn([...cursors, next]),
    };
  };
  return {
    /** The path of the current page of the list. */
    path: cursor === undefined ? path : `${path}&cursor=${encodeURIComponent(cursor)}`,
    isFirst: cursor === undefined,
    pagerOf,
  };
}

export function Pager({ page, onNewer, onOlder, children }: PagerProps) {
  if (page === 1 && onOlder === undefined) return null;
  return (
    <nav class="pager row" aria-label="Pages of the list">
      <span class="quiet small figure">{children ?? `Page ${page}`}</span>
      <Button isDisabled={onNewer === undefined} onClick={() => onNewer?.()}>
        <Icon name="left" /> Newer
      </Button>
      <Button isDisabled={onOlder === undefined} onClick={() => onOlder?.()}>
        Older <Icon name="right" />
      </Button>
    </nav>
  );
}
