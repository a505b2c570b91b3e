import type { ComponentChildren, ComponentType } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Icon, type IconName, Mark } from './parts/icon';
import { hrefOf, place } from './router';

export interface Room {
  readonly path: string;
  readonly name: string;
  readonly icon: IconName;
  readonly page: ComponentType;
  /** The page of a single item, at `path/id`. */
  readonly one?: { readonly name: string; readonly page: ComponentType<{ readonly id: string }> };
}

interface Props {
  readonly rooms: readonly Room[];
  readonly menu: ComponentChildren;
  /** A notice above every page. */
  readonly notice?: ComponentChildren;
}

/** The frame of every page of a signed-in user: the list of pages, the menu, and the page itself. */
export function Frame({ rooms, menu, notice }: Props) {
  const { path } = place.value;
  const [, roomPath, id = ''] = /^(\/[^/]+)\/([^/]+)$/.exec(path) ?? [];
  const room = rooms.find((each) => each.path === path);
  const one = rooms.find((each) => each.path === roomPath)?.one;
  const main = useArrival(path, room?.name ?? one?.name ?? 'Not found');

  const isAt = (each: Room) => path === each.path || (each.path !== '/' && path.startsWith(`${each.path}/`));
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <header class="side">
        <a class="brand" href={hrefOf('/')} aria-label={`Tollgate: ${rooms[0]?.name}`}>
          <Mark />
          <span>Tollgate</span>
        </a>
        <nav aria-label="Pages">
          <ul>
            {rooms.map((each) => (
              <li key={each.path}>
                <a href={hrefOf(each.path)} aria-current={isAt(each) ? 'page' : undefined}>
                  <Icon name={each.icon} />
                  <span>{each.name}</span>
                </a>
              </li>
            ))}
          </ul>
        </nav>
        {menu}
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {notice}
        {room !== undefined ? <room.page /> : one !== undefined ? <one.page id={id} key={id} /> : <NowhereKnown />}
      </main>
    </div>
  );
}

/** Announces the shown page: sets the window's title, and moves the focus for screen readers. */
function useArrival(path: string, title: string) {
  const main = useRef<HTMLElement>(null);
  const [first] = useState(path);
  const last = useRef(first);
  useEffect(() => {
    document.title = `${title} · Tollgate`;
    if (last.current !== path) main.current?.focus({ preventScroll: true });
    last.current = path;
  }, [path, title]);
  return main;
}

function NowhereKnown() {
  return (
    <div class="empty">
      <h1>Page not found</h1>
      <p class="quiet">Check the address.</p>
      <p>
        <a class="button" href={hrefOf('/')}>
          Go to the first page
        </a>
      </p>
    </div>
  );
}
