import { type ComponentChildren, type ComponentType, render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import './style/tokens.css';
import './style/base.css';
import './style/controls.css';
import './style/shell.css';
import './style/panels.css';
import './style/tables.css';
import './style/chart.css';
import { Announcements } from './parts/announce';
import { Dialogs } from './parts/dialog';
import { Icon, type IconName, Mark } from './parts/icon';
import { Failed } from './parts/states';
import { go, hrefOf, place, startRouter } from './router';
import type { Sessions } from './sessions';

export interface Room {
  readonly path: string;
  readonly name: string;
  readonly icon: IconName;
  /** Whether the session's user may see the page. Default: every user. */
  readonly isFor?: () => boolean;
  readonly page: ComponentType;
  /** The page of one item, at `path/id`. Absent if this part of the console has only a list. */
  readonly one?: { readonly name: string; readonly page: ComponentType<{ readonly id: string }> };
}

interface Props<S> {
  readonly sessions: Sessions<S>;
  readonly signIn: ComponentType<{ readonly hasEnded: boolean }>;
  readonly rooms: readonly Room[];
  /** Draws the menu of the signed-in user. */
  readonly menu: ComponentType<{ readonly session: S }>;
  /** The pages that need no session, by their paths. */
  readonly open?: Readonly<Record<string, ComponentType>>;
  /** Returns a notice that every page shows at its top. Absent if there is none. */
  readonly noticeOf?: (session: S) => ComponentChildren;
}

/** Draws the sign-in form, or the pages once the user is signed in. */
export function start<S>(props: Props<S>): void {
  startRouter();
  void props.sessions.findSession();
  const page = document.getElementById('page');
  if (page === null) return;
  render(
    <>
      <Inside {...props} />
      <Announcements />
    </>,
    page,
  );
}

function Inside<S>(props: Props<S>) {
  const { sessions, signIn: SignIn, open = {} } = props;
  const state = sessions.session.value;
  const Open = open[place.value.path];
  if (Open !== undefined) return <Open />;
  switch (state.kind) {
    case 'unknown':
      return null;
    case 'unreachable':
      return (
        <main class="alone">
          <Failed failure={state.failure} onRetry={sessions.findSession} />
        </main>
      );
    case 'signed-out':
      return <SignIn hasEnded={state.ended} />;
    case 'signed-in':
      return <Frame {...props} session={state.session} />;
  }
}

/** The frame of every page of a signed-in user: the list of pages, the menu, and the page itself. */
function Frame<S>({ rooms: all, menu: Menu, noticeOf, session }: Props<S> & { readonly session: S }) {
  const rooms = all.filter(({ isFor }) => isFor?.() ?? true);
  const { path } = place.value;
  const [, roomPath, id = ''] = /^(\/[^/]+)\/([^/]+)$/.exec(path) ?? [];
  const room = rooms.find((each) => each.path === path);
  const one = rooms.find((each) => each.path === roomPath)?.one;
  const main = useArrival(path, room?.name ?? one?.name ?? 'Not found');
  const isSignIn = path === '/sign-in';
  useEffect(() => {
    if (isSignIn) go('/', { replace: true });
  }, [isSignIn]);
  if (isSignIn) return null;

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
        <Menu session={session} />
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {noticeOf?.(session)}
        {room !== undefined ? <room.page /> : one !== undefined ? <one.page id={id} key={id} /> : <NowhereKnown />}
      </main>
      <Dialogs />
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
