import type { ComponentChildren, ComponentType } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Icon, type IconName, Mark } from './parts/icon';
import { hrefOf, place } from './router';

export interface Room {
  readonly path: string;
  readonly name: string;
  readonly icon: IconName;
  readonly page: ComponentType;
}

interface Props {
  readonly rooms: readonly Room[];
  /** The title of a page that is in no room itself. */
  readonly titleOf?: (path: string) => string | undefined;
  readonly menu: ComponentChildren;
  readonly children: ComponentChildren;
}

/** What is around every page of somebody who is signed in: where one can go, who is signed in, and the page itself. */
export function Frame({ rooms, titleOf = () => undefined, menu, children }: Props) {
  const { path } = place.value;
  const title = rooms.find((each) => each.path === path)?.name ?? titleOf(path) ?? 'Not found';
  const main = useArrival(path, title);

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
        {children}
      </main>
    </div>
  );
}

/** Says where one has come to: in the window's title, and to screen readers by moving the focus there. */
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

export function NowhereKnown() {
  return (
    <div class="empty">
      <h1>There is no such page</h1>
      <p class="quiet">The address may be mistyped, or the page has moved.</p>
      <p>
        <a class="button" href={hrefOf('/')}>
          To the first page
        </a>
      </p>
    </div>
  );
}
