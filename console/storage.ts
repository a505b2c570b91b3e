/** Values that this browser keeps for the next visit. If its storage is disabled, it keeps nothing. */

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
    // Without storage the choice lasts until the user leaves the page.
  }
}
