import { signal } from '@preact/signals';

/** Reads and changes the page's address without reloading the page. */

/** The root path, `/console` or `/operator`, which the build sets. */
export const ROOT = import.meta.env.BASE_URL.replace(/\/$/, '');

export interface Place {
  /** The path below `ROOT`: `/`, `/usage`, `/sandboxes/…` */
  readonly path: string;
  readonly query: URLSearchParams;
}

export const place = signal<Place>(readPlace());

function readPlace(): Place {
  const path = window.location.pathname.slice(ROOT.length).replace(/\/+$/, '');
  return { path: path === '' ? '/' : path, query: new URLSearchParams(window.location.search) };
}

export function hrefOf(path: string): string {
  return path === '/' ? ROOT : `${ROOT}${path}`;
}

/** Navigates to a path below `ROOT`. `replace` replaces the current entry in the browser's history. */
export function go(path: string, { replace = false } = {}): void {
  window.history[replace ? 'replaceState' : 'pushState'](null, '', hrefOf(path));
  const before = place.value.path;
  place.value = readPlace();
  if (place.value.path !== before) window.scrollTo(0, 0);
}

/** Changes parameters of the address's query. undefined or an empty text removes a parameter. */
export function changeQuery(
  changes: Readonly<Record<string, string | undefined>>,
  options?: { replace?: boolean },
): void {
  const query = new URLSearchParams(place.value.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === '') query.delete(name);
    else query.set(name, value);
  }
  go(`${place.value.path}${query.size === 0 ? '' : `?${query}`}`, options);
}

/** Navigates without a page load when the user clicks a link inside the page. The browser handles new tabs, downloads and links to other sites. */
function onClick(event: MouseEvent): void {
  if (
    event.defaultPrevented ||
    event.button !== 0 ||
    event.metaKey ||
    event.ctrlKey ||
    event.shiftKey ||
    event.altKey
  ) {
    return;
  }
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  if (link === null || link.target !== '' || link.hasAttribute('download') || link.origin !== window.location.origin) {
    return;
  }
  const isInside = link.pathname === ROOT || link.pathname.startsWith(`${ROOT}/`);
  const isAnchor = link.getAttribute('href')?.startsWith('#') ?? true;
  if (!isInside || isAnchor || link.pathname.startsWith(`${ROOT}/api/`)) return;
  event.preventDefault();
  go(`${link.pathname.slice(ROOT.length)}${link.search}`);
}

/** Reads the part of the address after `#` and removes it, so that the browser history does not keep its secret. */
export function takeFragment(): URLSearchParams {
  const fragment = new URLSearchParams(window.location.hash.slice(1));
  if (fragment.has('token') || fragment.has('error')) {
    window.history.replaceState(null, '', window.location.pathname + window.location.search);
  }
  return fragment;
}

export function startRouter(): void {
  window.addEventListener('popstate', () => {
    place.value = readPlace();
  });
  document.addEventListener('click', onClick);
}
