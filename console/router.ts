import { signal } from '@preact/signals';

/** The address of the page, and navigation without reloading the page. */

/** `/console` or `/operator`, which the build sets. */
export const ROOT = import.meta.env.BASE_URL.replace(/\/$/, '');

export interface Place {
  /** The path below the root: `/`, `/usage`, `/sandboxes/…` */
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

/** Goes to a path below the root. */
export function go(path: string, { replace = false } = {}): void {
  window.history[replace ? 'replaceState' : 'pushState'](null, '', hrefOf(path));
  const before = place.value.path;
  place.value = readPlace();
  if (place.value.path !== before) window.scrollTo(0, 0);
}

/** Changes parts of the query; undefined or an empty text removes a part. */
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

/** Handles clicks on links inside the page without loading it. The browser handles new tabs, downloads and other sites. */
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

export function startRouter(): void {
  window.addEventListener('popstate', () => {
    place.value = readPlace();
  });
  document.addEventListener('click', onClick);
}
