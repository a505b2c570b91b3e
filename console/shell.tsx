import type { ComponentType } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { AccountMenu } from './account-menu';
import { KeysPage } from './pages/keys/keys-page';
import { OverviewPage } from './pages/overview/overview-page';
import { SandboxPage } from './pages/sandboxes/sandbox-page';
import { SandboxesPage } from './pages/sandboxes/sandboxes-page';
import { SignInPage } from './pages/sign-in';
import { UsagePage } from './pages/usage/usage-page';
import { Announcements } from './parts/announce';
import { Icon, type IconName, Mark } from './parts/icon';
import { Failed } from './parts/states';
import { go, hrefOf, place } from './router';
import { findSession, session } from './session';

interface Room {
  readonly path: string;
  readonly name: string;
  readonly icon: IconName;
  readonly page: ComponentType;
}

const ROOMS: readonly Room[] = [
  { path: '/', name: 'Overview', icon: 'overview', page: OverviewPage },
  { path: '/usage', name: 'Usage Records', icon: 'usage', page: UsagePage },
  { path: '/keys', name: 'API Keys', icon: 'keys', page: KeysPage },
  { path: '/sandboxes', name: 'Sandboxes', icon: 'sandboxes', page: SandboxesPage },
];

/** What is around every page: who is signed in, where one can go, and the page itself. */
export function Shell() {
  return (
    <>
      <Inside />
      <Announcements />
    </>
  );
}

function Inside() {
  const state = session.value;
  if (state.is === 'unknown') return null;
  if (state.is === 'unreachable') {
    return (
      <main class="alone">
        <Failed failure={state.failure} onRetry={findSession} />
      </main>
    );
  }
  if (state.is === 'signed-out') return <SignInPage hasEnded={state.ended} />;
  return <Rooms isFrozen={state.session.account.status === 'frozen'} />;
}

function Rooms({ isFrozen }: { readonly isFrozen: boolean }) {
  const { path } = place.value;
  const isSignIn = path === '/sign-in';
  useEffect(() => {
    if (isSignIn) go('/', { replace: true });
  }, [isSignIn]);
  const room = ROOMS.find((each) => each.path === path);
  const sandboxId = /^\/sandboxes\/([^/]+)$/.exec(path)?.[1];
  const title = room?.name ?? (sandboxId === undefined ? 'Not found' : 'Sandbox');
  const main = useArrival(path, title);

  const isAt = (each: Room) => path === each.path || (each.path !== '/' && path.startsWith(`${each.path}/`));
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <header class="side">
        <a class="brand" href={hrefOf('/')} aria-label="Tollgate: Overview">
          <Mark />
          <span>Tollgate</span>
        </a>
        <nav aria-label="Pages">
          <ul>
            {ROOMS.map((each) => (
              <li key={each.path}>
                <a href={hrefOf(each.path)} aria-current={isAt(each) ? 'page' : undefined}>
                  <Icon name={each.icon} />
                  <span>{each.name}</span>
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <AccountMenu />
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {isFrozen && (
          <p class="note warn frozen">This account is frozen: its calls are refused until the operator lifts that.</p>
        )}
        {sandboxId !== undefined ? (
          <SandboxPage id={sandboxId} key={sandboxId} />
        ) : room !== undefined ? (
          <room.page />
        ) : (
          !isSignIn && <NowhereKnown />
        )}
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

function NowhereKnown() {
  return (
    <div class="empty">
      <h1>There is no such page</h1>
      <p class="quiet">The address may be mistyped, or the page has moved.</p>
      <p>
        <a class="button" href={hrefOf('/')}>
          To the overview
        </a>
      </p>
    </div>
  );
}
