/** Values that the browser stores until the next visit. If its storage is disabled, nothing is stored. */

export function recall(name: string): string | undefined {
  try {
    return localStorage.getItem(name) ?? undefined;
  } catch {
    return undefined;
  }
}

export function store(name: string, value: string | undefined): void {
  try {
    if (value === undefined) localStorage.removeItem(name);
    else localStorage.setItem(name, value);
  } catch {
    // Ignores disabled storage: the user's choice then lasts until the user leaves the page.
  }
}
